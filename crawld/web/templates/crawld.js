// Suggestions while typing: the WAI-ARIA combobox pattern over /-/suggest. Without this script the
// form searches as usual.
"use strict";
const PAUSE_MS = 120;

for (const input of document.querySelectorAll("form[role=search] input[name=q]")) {
  const list = document.createElement("ul");
  let options = [], active = -1, timer = 0, asked = 0;
  list.id = `${input.id}-suggestions`;
  list.className = "suggestions";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Pages");
  input.insertAdjacentElement("afterend", list);
  for (const [name, value] of Object.entries({
    role: "combobox", autocomplete: "off", "aria-autocomplete": "list",
    "aria-expanded": "false", "aria-controls": list.id,
  })) input.setAttribute(name, value);

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const mark = (next) => {
    active = next;
    options.forEach((option, k) => option.setAttribute("aria-selected", String(k === active)));
    if (active < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", options[active].id);
      options[active].scrollIntoView({block: "nearest"});
    }
  };

  const show = (pages) => {
    options = pages.map((page, k) => {
      const option = document.createElement("li");
      const title = document.createElement("b"), place = document.createElement("small");
      title.textContent = page.title;
      place.textContent = page.place;
      option.append(title, place);
      option.id = `${list.id}-${k}`;
      option.dataset.path = page.path;
      option.setAttribute("role", "option");
      option.addEventListener("mousedown", (event) => event.preventDefault());
      option.addEventListener("click", () => location.assign(page.path));
      return option;
    });
    list.replaceChildren(...options);
    close();
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(-1);
  };

  const ask = async () => {
    const typed = input.value.trim(), number = ++asked;
    if (!typed) return show([]);
    try {
      const answer = await fetch(`/-/suggest?q=${encodeURIComponent(typed)}`);
      const pages = answer.ok ? await answer.json() : [];
      if (number === asked && document.activeElement === input) show(pages);
    } catch { /* the mirror was stopped: searching says so */ }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || list.hidden) return;
    const count = options.length;
    if (event.key === "ArrowDown") mark(active + 1 < count ? active + 1 : -1);
    else if (event.key === "ArrowUp") mark(active < 0 ? count - 1 : active - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && active >= 0) location.assign(options[active].dataset.path);
    else return;
    event.preventDefault();
  });
}
