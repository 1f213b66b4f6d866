"""Reads YAML strictly: whatever is not as it should be is one error, with its file and line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import yaml

T = TypeVar("T")


class FileError(Exception):
    """What is wrong with a file, and where."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}")


class Node:
    """A place in a YAML file, which can be taken for a text, a number, a list or a mapping."""

    def __init__(self, path: Path, node: yaml.Node) -> None:
        self._path = path
        self._node = node

    def error(self, problem: str) -> FileError:
        return FileError(self._path, self._node.start_mark.line + 1, problem)

    def text(self) -> str:
        """Any scalar, as it is written: an order number keeps its zeros."""
        if not isinstance(self._node, yaml.ScalarNode) or not self._node.value.strip():
            raise self.error("a text is expected here")
        return self._node.value.strip()

    def number(self) -> float:
        """A number that is not negative."""
        try:
            number = float(self._node.value) if self._tag() in {"int", "float"} else -1.0
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise self.error("a number is expected here, 0 or more")
        return number

    def whole_number(self) -> int:
        if not (number := self.number()).is_integer():
            raise self.error("a whole number is expected here")
        return int(number)

    def true(self) -> bool:
        if self._tag() != "bool" or self._node.value.lower() not in {"true", "yes", "on"}:
            raise self.error("only 'true' can stand here")
        return True

    def one_of(self, choices: Collection[str], what: str) -> str:
        if (text := self.text()) not in choices:
            raise self.error(f"unknown {what} {text!r}{_suggestion(text, choices)}")
        return text

    def items(self) -> list[Node]:
        if not isinstance(self._node, yaml.SequenceNode) or not self._node.value:
            raise self.error("a list is expected here")
        return [Node(self._path, item) for item in self._node.value]

    def mapping(self, keys: Collection[str], what: str = "key") -> Mapping:
        """The values of a mapping, which has no other keys than these."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error(f"a mapping is expected here, with any of: {', '.join(keys)}")
        found = Mapping()
        for key_node, value_node in self._node.value:
            key = Node(self._path, key_node)
            name = key.one_of(keys, what)
            if name in found:
                raise key.error(f"{what} {name!r} stands here twice")
            found[name] = Node(self._path, value_node)
        return found

    def _tag(self) -> str:
        return self._node.tag.rpartition(":")[2]


class Mapping(dict[str, Node]):
    """The nodes of a mapping, by key."""

    def take(self, key: str, read: Callable[[Node], T], default: T) -> T:
        """Read the value of a key, if it is there."""
        return read(self[key]) if key in self else default


def read_yaml(path: Path) -> Node:
    """Read the one document of a file.

    Raises:
        FileError: The file cannot be read, is no YAML, or is empty.
    """
    try:
        node: yaml.Node | None = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            path, 1, f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise FileError(path, mark.line + 1 if mark else 1, f"not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise FileError(path, 1, f"not YAML: {error}".splitlines()[0]) from None
    if node is None:
        raise FileError(path, 1, "the file is empty")
    return Node(path, node)


def _suggestion(text: str, choices: Collection[str]) -> str:
    close = get_close_matches(text, choices, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; it can be: {', '.join(choices)}"
