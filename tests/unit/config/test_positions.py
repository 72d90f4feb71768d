"""Lines of keys, compared with `tomllib`: every path it parses has the right line."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from crawld.config.positions import key_lines, nearest_line
from crawld.config.template import to_toml


def paths(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, part in items:
        yield from paths(part, (*path, key))


TEXT = '''\
# [comment]
[daemon]
db = "x # y = 1"   # z
contact = """a
b ]] = """
"quo.ted" = 1.5
[politeness]
a.b = 1979-05-27T07:32:00.5Z
when = 1979-05-27 07:32:00
[[site]]
name = 'a'
seeds = [
  "u", # one
  "v",
  ["w", {x=1, y=[1,
 2]}],
]
[site.sub]
k = \'\'\'
[x]
\'\'\'
[[site]]
name="b"
[[site.inner]]
z=1
[[site.inner]]
"z\\u0041" = """\\""""
'''


def test_every_path_has_its_line():
    lines = key_lines(TEXT)
    assert set(lines) == set(paths(tomllib.loads(TEXT)))
    expected = {
        ("daemon",): 2,
        ("daemon", "contact"): 4,
        ("daemon", "quo.ted"): 6,
        ("politeness", "a", "b"): 8,
        ("politeness", "when"): 9,
        ("site", 0, "seeds", 1): 14,
        ("site", 0, "seeds", 2, 1, "y", 1): 16,
        ("site", 0, "sub", "k"): 19,
        ("site", 1): 22,
        ("site", 1, "inner", 1, "zA"): 27,
    }
    assert {path: lines[path] for path in expected} == expected


def test_unknown_paths_fall_back_to_the_table_around_them():
    lines = key_lines("[a]\nb = 1\n")
    assert nearest_line(lines, ("a", "missing", 3)) == 1
    assert nearest_line(lines, ("c",)) is None


VALUES = st.recursive(
    st.integers(-9, 9) | st.booleans() | st.text(alphabet="a\"'#[]{}=,.\\\n é", max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(alphabet='ab."]#= ', min_size=1, max_size=4), VALUES, max_size=5))
def test_every_key_of_any_table_has_a_line(table):
    text = "".join(f"{to_toml(key)} = {to_toml(value)}\n" for key, value in table.items())
    lines = key_lines(text)
    assert set(lines) == set(paths(tomllib.loads(text)))
    assert [lines[(key,)] for key in table] == list(range(1, len(table) + 1))
