"""Registry and rule files agree; codes are unique, sorted, never a retired one; names say what is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from trimtab.rules import registry
from trimtab.rules.rule import Subject

RULES_DIR = Path(registry.__file__).parent
SUBJECT_FOLDERS = {"command": Subject.COMMAND, "host": Subject.HOST, "log": Subject.LOG, "client": Subject.CLIENT}
NOT_RULES = {
    "__init__",
    "arguments",
    "context",
    "facts",
    "families",
    "fixes",
    "launch",
    "lint",
    "memory",
    "names",
    "oom",
    "statements",
    "words",
}
REMEDY = re.compile(r"^(use|avoid|prefer|do-not|add|remove|set|raise|lower)-")


def rule_files() -> set[str]:
    found = set()
    for folder in SUBJECT_FOLDERS:
        for path in (RULES_DIR / folder).glob("*.py"):
            if path.stem not in NOT_RULES:
                found.add(f"{folder}.{path.stem}")
    return found


def test_table_is_the_files() -> None:
    assert set(registry.RULES.values()) == rule_files()
    assert len(set(registry.RULES.values())) == len(registry.RULES)


def test_codes_are_sorted_and_not_retired() -> None:
    codes = list(registry.RULES)
    assert codes == sorted(codes)
    assert not set(codes) & set(registry.RETIRED)
    assert all(re.fullmatch(r"[A-Z]{3}\d{3}", code) for code in codes)


def test_each_file_declares_what_the_table_says() -> None:
    for code, module in registry.RULES.items():
        rule = registry.rule(code)
        folder, _, stem = module.partition(".")
        assert rule.code == code
        assert rule.subject is SUBJECT_FOLDERS[folder]
        assert rule.name == stem.replace("_", "-"), f"{code}: name and file differ"
        assert not REMEDY.match(rule.name), f"{code}: a name says what is wrong, not what to do"


def test_triggers_are_those_of_the_rules() -> None:
    """Else a rule is passed over in a text that it speaks of: `scripts/docs` makes the table anew."""
    scripts = str(Path(__file__).parents[2] / "scripts")
    code = f"import sys; sys.path.insert(0, {scripts!r}); from rule_triggers.table import table; print(table(), end='')"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert made == (RULES_DIR / "triggers.json").read_text(encoding="utf-8")
