"""Things of the master's, as it last told of them."""

from typing import Any, ClassVar, Dict, Type, TypeVar

from determined._absent import Lacking
from determined.experimental._master import Master

T = TypeVar("T", bound="ById")


class Told(Lacking):
    """Its members are what an answer had; reload(), where a class has it, asks again."""

    def __init__(self, master: Master, raw: Dict[str, Any]) -> None:
        self._master = master
        self._take(raw)

    def _take(self, raw: Dict[str, Any]) -> None:
        raise NotImplementedError


class ById(Told):
    """What a user names by its number: it is asked for at once."""

    _ROUTE: ClassVar[str]
    _MEMBER: ClassVar[str]

    def __init__(self, master: Master, id: int) -> None:
        self._master = master
        self.id = id
        self.reload()

    @classmethod
    def _of(cls: Type[T], master: Master, raw: Dict[str, Any]) -> T:
        self = cls.__new__(cls)
        self.id = raw["id"]
        Told.__init__(self, master, raw)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id})"

    @property
    def _path(self) -> str:
        return f"{self._ROUTE}/{self.id}"

    def reload(self) -> None:
        self._take(self._master.get(self._path)[self._MEMBER])
