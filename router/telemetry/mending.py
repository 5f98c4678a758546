"""Redis keys that hold what cannot be: read as empty, replaced when written, one warning each.

An operator's hand, a broken backup or another program may leave a key of the wrong type or a sum
that is no number. Nothing can be added to it, so without this nothing would be shared any more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from router.in_redis import Redis, ResponseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from router.telemetry.oddities import Oddities

_WRONG_TYPE: Final = "WRONGTYPE"
_NO_NUMBER: Final = re.compile("not an? (valid )?(integer|float)|NaN|overflow")
_FIELD_SUMS: Final = ("HINCRBY", "HINCRBYFLOAT")

Command = tuple[Any, ...]


def itself(field: str) -> Sequence[str]:
    """The fields of a hash that stand and fall with one: no others."""
    return (field,)


async def read(answer: Any, name: str, odd: Oddities, otherwise: Any) -> Any:
    """What a command answers; `otherwise` if the key is of another type."""
    try:
        return await cast("Awaitable[Any]", answer)
    except ResponseError as error:
        return or_else(error, name, odd, otherwise)


def or_else(answer: Any, name: str, odd: Oddities, otherwise: Any) -> Any:
    """The same for an answer out of a pipeline that raises nothing.

    Raises:
        ResponseError: refused for another reason than the key's type.
    """
    if not isinstance(answer, Exception):
        return answer
    if not str(answer).startswith(_WRONG_TYPE):
        raise answer
    odd.tell(name, str(answer))
    return otherwise


def number_of(value: bytes | None, otherwise: int) -> int:
    """A counter's value; `otherwise` for none, and for what is no number."""
    try:
        return int(value) if value is not None else otherwise
    except ValueError:
        return otherwise


async def execute(
    client: Redis,
    pipe: Any,
    odd: Oddities,
    together: Callable[[str], Sequence[str]] = itself,
) -> None:
    """Execute a transaction; where a key or a field is unfit, replace it and write again.

    Args:
        client: that the pipe is of.
        pipe: with what is to be written.
        odd: told of what was replaced.
        together: the fields of a hash that only make sense with the one that is replaced.

    Raises:
        RedisError: as the pipe raises it, for everything else.
    """
    commands: list[Command] = [command[0] for command in pipe.command_stack]
    answers = await pipe.execute(raise_on_error=False)
    keys: set[str] = set()
    fields: set[tuple[str, str]] = set()
    for command, answer in zip(commands, answers, strict=True):
        if isinstance(answer, Exception):
            _note(command, answer, keys, fields, together)
            odd.tell(command[1], f"replaced: {answer}")
    if keys or fields:
        await _again(client, commands, keys, fields)


def _note(
    command: Command,
    answer: Exception,
    keys: set[str],
    fields: set[tuple[str, str]],
    together: Callable[[str], Iterable[str]],
) -> None:
    reason = str(answer)
    if reason.startswith(_WRONG_TYPE):
        keys.add(command[1])
    elif not _NO_NUMBER.search(reason):
        raise answer
    elif command[0] in _FIELD_SUMS:
        fields.update((command[1], field) for field in together(command[2]))
    else:
        keys.add(command[1])


async def _again(
    client: Redis, commands: list[Command], keys: set[str], fields: set[tuple[str, str]]
) -> None:
    """Everything that concerns what is replaced, also what had gone well."""
    async with client.pipeline(transaction=True) as pipe:
        for name in keys:
            pipe.delete(name)
        for name, field in fields:
            pipe.hdel(name, field)
        for command in commands:
            if command[1] in keys or (command[0] in _FIELD_SUMS and command[1:3] in fields):
                pipe.execute_command(*command)
        await pipe.execute()
