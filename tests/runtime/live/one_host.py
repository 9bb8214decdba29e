"""One host in a process of its own: runs the mechanism until it is told to stop, then says what it did."""

import json
import sys

from tests.runtime.live.mechanism import Summary, components

from nearcast.runtime.live import FedPosition, LiveRuntime, UdpNetwork, run_until_stopped


def main(name: str, lat: str, lon: str, others: str, count: str, patience: str, group: str, port: str) -> None:
    summaries: list[Summary] = []

    def finished(summary: Summary) -> None:
        summaries.append(summary)
        print("finished", flush=True)

    runtime = LiveRuntime(seed=7)
    position = FedPosition(runtime.clock)
    position.update(float(lat), float(lon), accuracy=0.0)
    network = UdpNetwork("wifi", group=group, group_port=int(port))
    runtime.add(
        name, lambda: components(int(others), int(count), float(patience), finished), [network], position=position.fix
    )
    run_until_stopped(runtime)
    traffic = [[row.host, row.direction, row.kind, row.messages, row.bytes] for row in runtime.traffic()]
    print(json.dumps({"did": summaries[0].did(), "traffic": traffic}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
