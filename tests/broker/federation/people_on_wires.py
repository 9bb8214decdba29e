"""A program: people at several brokers, told line by line on standard input what to do; it answers each line when that is done.

``publish WORD``: a client of each broker addresses everybody; answered when everybody has all of it, each once.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from tests.broker.federation.people import Person, person

import nearcast

EVERYBODY = "present = true"


async def main(urls: list[str]) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        people: list[Person] = [
            await stack.enter_async_context(person(url, f"person-{number}", present=True))
            for number, url in enumerate(urls)
        ]
        senders = [
            await stack.enter_async_context(nearcast.connect(url, client_id=f"sender-{number}", timeout=300))
            for number, url in enumerate(urls)
        ]
        expected: list[str] = []
        answer("ready")
        while words := (await loop.run_in_executor(None, sys.stdin.readline)).split():
            command, *rest = words
            if command == "publish":
                word, *among = rest
                chosen = [int(number) for number in among] or range(len(senders))
                new = [f"{word} {number}" for number in chosen]
                await asyncio.gather(
                    *(
                        senders[number].publish("news", text, to=EVERYBODY)
                        for number, text in zip(chosen, new, strict=True)
                    )
                )
                expected += new
                answer("acknowledged")
            elif command == "wait":
                for each in people:
                    await each.until_got(*expected)
                answer("everybody has it")


def answer(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
