"""A bounded memory that threads share."""

from __future__ import annotations

from threading import Thread

from causerie.engines.cache import Cache


def test_the_least_recently_used_goes() -> None:
    cache: Cache[str, int] = Cache(2)
    for key in "ab":
        cache.put(key, ord(key))
    assert cache.get("a") == ord("a")
    cache.put("c", ord("c"))
    assert (cache.get("a"), cache.get("b"), len(cache)) == (ord("a"), None, 2)


def test_what_is_looked_up_is_not_pushed_out_meanwhile() -> None:
    """In the middle of a look-up another thread comes and fills the memory."""
    cache: Cache[object, int] = Cache(2)
    begun: list[Thread] = []

    class Key:
        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            if watched and len(begun) < 1:
                watched.append(None)
                if len(watched) == 3:  # it has been found, and is to be moved up
                    begun.append(Thread(target=fill))
                    begun[0].start()
                    begun[0].join(0.2)
            return 1

    def fill() -> None:
        for name in ("third", "fourth"):
            cache.put(name, 3)

    watched: list[None] = []
    key = Key()
    cache.put(key, 1)
    cache.put("second", 2)
    watched.append(None)
    assert cache.get(key) == 1
    begun[0].join()
    assert (cache.get("third"), cache.get("fourth")) == (3, 3)
