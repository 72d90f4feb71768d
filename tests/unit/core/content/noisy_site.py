"""A seeded site with noise on every page, whose editors make known edits.

Content and noise come from separate random generators, so that the truth is known: `Page.edit`
changes content, `Page.render` adds new noise.
"""

import random
from dataclasses import dataclass, field

WORDS = (
    *("river", "house", "garden", "letter", "winter", "market", "bridge", "stone", "village"),
    *("morning", "paper", "window", "forest", "captain", "music", "island", "history", "station"),
    *("doctor", "council", "harbour", "summer", "valley", "kitchen", "teacher", "company"),
    *("mountain", "railway", "painter", "weather"),
)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

EDITS = {
    "digits": 20,
    "delete": 10,
    "word": 25,
    "insert": 20,
    "link": 8,
    "image": 5,
    "heading": 6,
    "level": 6,
}


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


@dataclass
class Page:
    rng: random.Random
    name: str
    sections: list[dict] = field(default_factory=list)

    def __post_init__(self):
        self.sections = [self.section() for _ in range(self.rng.randint(3, 7))]

    def section(self) -> dict:
        rng = self.rng
        return {
            "level": 2,
            "heading": words(rng, 3),
            "paragraphs": [self.paragraph() for _ in range(rng.randint(2, 4))],
            "rows": [(words(rng, 1), rng.randint(0, 99), rng.randint(0, 99)) for _ in range(3)],
            "links": [(f"/{words(rng, 1)}-{rng.randint(1, 99)}", words(rng, 2)) for _ in range(3)],
            "image": f"/img/{words(rng, 1)}.png",
        }

    def paragraph(self) -> str:
        middle = f" {self.rng.randint(2, 999)} " if self.rng.random() < 0.5 else " "
        return words(self.rng, 12) + middle + words(self.rng, 12) + "."

    def edit(self) -> str:
        rng = self.rng
        kind = rng.choices(list(EDITS), list(EDITS.values()))[0]
        section = rng.choice(self.sections)
        getattr(self, "edit_" + kind)(section, rng)
        return kind

    def edit_digits(self, section, rng):
        index = rng.randrange(3)
        name, a, b = section["rows"][index]
        section["rows"][index] = (name, a, (b + rng.randint(1, 9)))

    def edit_delete(self, section, rng):
        if len(section["paragraphs"]) > 1:
            del section["paragraphs"][rng.randrange(len(section["paragraphs"]))]
        elif len(self.sections) > 1:
            self.sections.remove(section)
        else:
            section["paragraphs"][0] = section["paragraphs"][0][:-9]

    def edit_word(self, section, rng):
        index = rng.randrange(len(section["paragraphs"]))
        text = section["paragraphs"][index].split()
        text[rng.randrange(len(text))] = "changed" + rng.choice(WORDS)
        section["paragraphs"][index] = " ".join(text)

    def edit_insert(self, section, rng):
        section["paragraphs"].insert(rng.randint(0, len(section["paragraphs"])), self.paragraph())

    def edit_link(self, section, rng):
        index = rng.randrange(3)
        section["links"][index] = (f"/moved-{rng.random():.9f}", section["links"][index][1])

    def edit_image(self, section, rng):
        section["image"] = f"/img/new-{rng.random():.9f}.png"

    def edit_heading(self, section, rng):
        section["heading"] += " " + rng.choice(WORDS)

    def edit_level(self, section, rng):
        section["level"] = 5 - section["level"]

    def render(self, noise: random.Random, at: float) -> bytes:
        """Return the page as served at a time, with new noise of every kind."""
        day = int(at // 86400)
        stamp = f"{DAYS[day % 7]}, {day % 28 + 1} {MONTHS[day // 28 % 9]} 2026"
        session = f"{noise.getrandbits(128):032x}"
        ads = "".join(
            f'<div class="ad"><a href="http://ads.example/c?{noise.random()}">'
            f'<img src="/ad{noise.randint(1, 99)}.gif">{words(noise, 4)}</a></div>'
            for _ in range(noise.randint(0, 2))
        )
        comments = "".join(
            f'<div class="comment"><h4>{words(noise, 2)}</h4><p>{words(noise, 9)}</p></div>'
            for _ in range(noise.randint(0, 3))
        )
        content = "".join(self.render_section(section, session) for section in self.sections)
        return f"""<!DOCTYPE html><html lang="en"><head><title>{self.name}</title>
<meta name="csrf-token" content="{noise.random()}"><script nonce="{noise.random()}">
var t = "<p>{noise.random()}</p>";</script></head><body class="page s{noise.randint(1, 99)}">
<!-- served by node {noise.random()} --><nav><ul>
<li><a href="/?sid={session}">Home</a></li><li><a href="/a;jsessionid={session}">All</a></li></ul>
<p>Today is {stamp}</p></nav>
<main><h1>{self.name}</h1><p>This page was viewed {noise.randint(10**3, 10**7)} times.</p>
{ads}{content}<p>Our sponsor</p><p>{words(noise, 7)}</p><p>Thanks to our readers.</p>
<form><input type="hidden" name="token" value="{session}"></form>
<section id="talk">{comments}</section></main>
<footer style="color: red"><span style="display: none">{noise.random()}</span>
Generated in {noise.random():.3f} s at {at % 86400:.0f}. Request {session[:12]}.</footer>
</body></html>""".encode()

    def render_section(self, section: dict, session: str) -> str:
        level = section["level"]
        rows = "".join(
            f"<tr><td>{n}</td><td>{a}</td><td>{b}</td></tr>" for n, a, b in section["rows"]
        )
        links = "".join(
            f'<li><a href="{href}?sid={session}">{text}</a></li>' for href, text in section["links"]
        )
        paragraphs = "".join(f"<p>{text}</p>" for text in section["paragraphs"])
        return (
            f"<h{level}>{section['heading']}</h{level}>{paragraphs}<table>{rows}</table>"
            f'<ul>{links}</ul><p><img src="{section["image"]}?{session}"></p>'
        )
