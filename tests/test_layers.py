"""Imports go downwards only. The one test that reads source text."""

import ast
from pathlib import Path

import headwater

ROOT = Path(headwater.__file__).parent

# From the bottom up. A module may import from its own row and the rows below it.
LAYERS: list[set[str]] = [
    {"events", "errors", "sse", "conversation", "recording"},
    {"judge"},
    {"dialects", "accumulate", "think", "mould", "policy", "lifecycle", "turn", "checks", "records"},
    {"source", "clock", "config"},
    {"store", "upstream", "simulate"},
    {"runs", "sessions", "agent"},
    {"server", "streams", "client", "cli", "testing"},
]
# They do I/O, each behind an agreement of its own, and know nothing of one another.
APART = LAYERS[4]
# The bottom three are pure: no event loop, no clock, no chance, no I/O.
PURE = set().union(*LAYERS[:3])
# All that they need. What is not here is a question to be asked.
ALLOWED = {
    "base64",
    "binascii",
    "collections",
    "datetime",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "headwater",
    "io",
    "itertools",
}
ALLOWED |= {"json", "msgspec", "operator", "re", "typing", "urllib.parse"}


def imports(path: Path) -> set[str]:
    """Full names of all that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[Path, str]:
    """Every file, with the part of the package that it belongs to."""
    return {path: path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}


def test_every_module_has_a_layer() -> None:
    assert set(modules().values()) - {"__init__"} <= set().union(*LAYERS)


def test_imports_go_downwards() -> None:
    height = {part: n for n, layer in enumerate(LAYERS) for part in layer}
    for path, part in modules().items():
        for name in imports(path):
            root, _, rest = name.partition(".")
            imported = rest.partition(".")[0]
            if root == "headwater" and imported in height:
                assert height[imported] <= height.get(part, -1), f"{path} imports {name}"
                assert part == imported or not {part, imported} <= APART, f"{path} imports {name}"


def test_the_lower_layers_are_pure() -> None:
    for path, part in modules().items():
        if part in PURE:
            for name in imports(path):
                assert any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED), f"{path}: {name}"
