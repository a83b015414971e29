"""The harm: what may be done to a deployment, in an order that the seed decides."""

from __future__ import annotations

import heapq
import itertools
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import psycopg
import redis

from tests.chaos.deployment.catalog import HOST_KEYS, OWNERS, POLICIES, REVOKED_OWNER
from tests.chaos.deployment.deployment import LOST_SECONDS
from tests.chaos.deployment.upstream import HEALTHY_PROFILE, HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaybatch.quickstart.shutdown import Shutdown
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.deployment import ChaosDeployment
    from tests.chaos.deployment.service import Service

PAUSE_SECONDS = (0.2, 2.0)
PAYLOADS_STAY_AWAY = "nothing is written where the payload folder was, while it is away"
DEFAULT_PROFILE: Mapping[str, float] = {
    "well": 90,
    "500": 2,
    "429": 2,
    "cut": 1,
    "closed": 1,
    "400": 1,
    "401": 1,
    "403": 1,
    "slow": 2,
    "no usage": 1,
    "interim": 2,
    "interim earlier": 3,
    "interim alone": 0.5,
    "junk behind": 0.5,
    "twice": 1,
    "twice, later": 2,
    "longer than it says": 0.5,
    "many headers": 0.5,
}
UPSTREAM_PROFILES: Mapping[str, Mapping[str, float]] = {
    "slow": {"slow": 8, "well": 2},
    "failing": {"500": 5, "502": 2, "529": 2, "well": 2},
    "busy": {"429": 5, "well": 3},
    "refusing": {"401": 3, "403": 3, "409": 1, "400": 1, "well": 3},
    "cutting": {"cut": 3, "reset": 2, "closed": 2, "well": 2},
    "talking nonsense": {"garbage": 3, "list": 1, "no usage": 2, "well": 3},
    "hanging": {"hanging": 5, "well": 3},
    "out of step": {
        "interim": 2,
        "interim earlier": 2,
        "interim alone": 1,
        "interim, then 500": 1,
        "junk behind": 2,
        "twice": 2,
        "twice, later": 2,
        "longer than it says": 1,
        "many headers": 1,
        "well": 6,
    },
}
_CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name <> 'chaos' AND backend_type = 'client backend'
"""


class FaultInjector:
    """Everything is done by the thread that calls `run`. What harms for a while has its end in `_later`."""

    def __init__(
        self, deployment: ChaosDeployment, findings: Findings, *, seed: int, shutdown: Shutdown
    ) -> None:
        self.done: Counter[str] = Counter()
        self._deployment = deployment
        self._findings = findings
        self._shutdown = shutdown
        self._random = random.Random(f"harm {seed}")
        self._scheduled: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._active: set[str] = set()
        self._first_survive = False
        self._faults: Mapping[Callable[[], bool], int] = {
            self._kill: 10,
            self._terminate: 6,
            self._freeze: 8,
            self._kill_all_workers: 1,
            self._flush_redis: 3,
            self._tamper_with_queue: 3,
            self._redis_away: 4,
            self._redis_read_only: 3,
            self._postgres_away: 3,
            self._cut_connections: 4,
            self._upstream_mood: 10,
            self._upstream_absent: 4,
            self._disable: 6,
            self._payloads_away: 2,
        }

    def run(self, seconds: float, *, before_fault: Callable[[], None]) -> None:
        """The first of each kind is not killed in the second half: long-lived processes are looked at for leaks.

        `look` is called before each harm.
        """
        self._deployment.upstream.profile = DEFAULT_PROFILE
        began = time.monotonic()
        next_harm, revoked = began, False
        while (now := time.monotonic()) < began + seconds:
            self._first_survive = now > began + seconds / 2
            self._run_due(now)
            if not revoked and self._first_survive:
                revoked = self._revoke()
            if now >= next_harm:
                before_fault()
                self._inject_one()
                next_harm = now + self._random.uniform(*PAUSE_SECONDS)
            self._shutdown.sleep(0.05)

    def recover(self) -> None:
        """All that was harmed is whole again."""
        while self._scheduled:
            self._run_due(time.monotonic())
            self._shutdown.sleep(0.05)
        self._deployment.upstream.profile = HEALTHY_PROFILE

    def _inject_one(self) -> None:
        """Some ways are barred by what is going on; then another one is tried."""
        for _ in range(10):
            way = self._random.choices(list(self._faults), list(self._faults.values()))[0]
            if way():
                return

    def _run_due(self, now: float) -> None:
        while self._scheduled and self._scheduled[0][0] <= now:
            heapq.heappop(self._scheduled)[2]()

    def _schedule(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._scheduled, (time.monotonic() + seconds, next(self._order), do))

    def _start_fault(self, what: str, done: str) -> bool:
        """False when it is being harmed already."""
        if what in self._active:
            return False
        self._active.add(what)
        self.done[done] += 1
        return True

    def _end_fault(self, what: str) -> None:
        self._active.discard(what)

    # Processes

    def _pick_service(self) -> Service:
        spared = self._first_survive
        return self._random.choice(
            [s for s in self._deployment.services if not (spared and s.name.endswith("1"))]
        )

    def _kill(self) -> bool:
        service = self._pick_service()
        if not self._start_fault(service.name, f"{service.kind} killed"):
            return False
        service.kill()
        self._schedule(self._random.uniform(0, 5), lambda: self._start_again(service))
        return True

    def _kill_all_workers(self) -> bool:
        workers = self._deployment.of_kind("worker")
        if self._first_survive or any(worker.name in self._active for worker in workers):
            return False
        for worker in workers:
            self._start_fault(worker.name, "worker killed with all others")
            worker.kill()
            self._schedule(self._random.uniform(0, 4), lambda worker=worker: self._start_again(worker))  # type: ignore[misc]
        return True

    def _terminate(self) -> bool:
        """The next one starts beside the one that leaves, as in a rolling deploy; a web process needs its port."""
        service = self._pick_service()
        if not self._start_fault(service.name, f"{service.kind} SIGTERM and a new one"):
            return False
        service.terminate()
        self._start_again(service)
        return True

    def _start_again(self, service: Service) -> None:
        if service.kind == "web" and service.is_stopping:
            self._schedule(0.1, lambda: self._start_again(service))
            return
        service.start()
        # It needs a moment before it is worth killing.
        self._schedule(3.0, lambda: self._end_fault(service.name))

    def _freeze(self) -> bool:
        """Longer than it takes to be declared lost, mostly."""
        workers = self._deployment.of_kind("worker")
        service = self._random.choice([*self._deployment.services, *workers, *workers])
        if not self._start_fault(service.name, f"{service.kind} SIGSTOP, SIGCONT"):
            return False
        service.freeze()
        self._schedule(self._random.uniform(1, LOST_SECONDS * 3), lambda: self._thaw(service))
        return True

    def _thaw(self, service: Service) -> None:
        service.thaw()
        self._end_fault(service.name)

    # Redis

    def _redis(self) -> redis.Redis:
        return redis.Redis.from_url(self._deployment.servers.redis_url, socket_timeout=5)

    def _flush_redis(self) -> bool:
        if "redis" in self._active:
            return False
        with self._redis() as client:
            client.flushall()
        self.done["Redis FLUSHALL"] += 1
        return True

    def _tamper_with_queue(self) -> bool:
        """Some messages once more, others lost."""
        if "redis" in self._active:
            return False
        with self._redis() as client:
            messages: Any = client.lrange("items", 0, 9)
            if messages:
                client.rpush("items", *messages)
                client.lpush("items", *reversed(messages))
            client.lpop("items", 3)
        self.done["messages doubled and lost"] += 1
        return True

    def _redis_away(self) -> bool:
        if not self._start_fault("redis", "Redis killed"):
            return False
        self._deployment.servers.redis.kill()
        self._schedule(self._random.uniform(0, 5), self._redis_back)
        return True

    def _redis_back(self) -> None:
        self._deployment.servers.redis.start()
        self._end_fault("redis")

    def _redis_read_only(self) -> bool:
        """As after a failover: it answers, and takes no writes."""
        if not self._start_fault("redis", "Redis read-only"):
            return False
        with self._redis() as client:
            client.replicaof("127.0.0.1", 1)
        self._schedule(self._random.uniform(0.5, 6), self._redis_writable)
        return True

    def _redis_writable(self) -> None:
        with self._redis() as client:
            client.replicaof("NO", "ONE")
        self._end_fault("redis")

    # PostgreSQL

    def _postgres_away(self) -> bool:
        if not self._start_fault("postgres", "PostgreSQL killed"):
            return False
        self._deployment.servers.postgres.kill()
        self._schedule(self._random.uniform(0, 4), self._postgres_back)
        return True

    def _postgres_back(self) -> None:
        self._deployment.servers.postgres.start()
        self._end_fault("postgres")

    def _cut_connections(self) -> bool:
        return self._by_sql("all database connections cut", _CUT)

    def _by_sql(self, done: str, statement: str, *parameters: object) -> bool:
        if "postgres" in self._active:
            return False
        with self._deployment.database() as database:
            database.execute(statement.encode(), parameters)
        self.done[done] += 1
        return True

    # Rows

    def _disable(self) -> bool:
        """A relay key, a host key or a policy, for a moment."""
        table, name = self._random.choice(
            [("routing_relaykey", owner) for owner in OWNERS]
            + [("routing_hostkey", name) for names in HOST_KEYS.values() for name in names]
            + [("routing_policy", name) for name in POLICIES]
        )
        if "postgres" in self._active or not self._start_fault(
            name, f"{table.removeprefix('routing_')} disabled"
        ):
            return False
        self._set_enabled(table, name, enabled=False)
        self._schedule(self._random.uniform(0.5, 3), lambda: self._enable(table, name))
        return True

    def _enable(self, table: str, name: str) -> None:
        """When PostgreSQL is away just now, later."""
        try:
            self._set_enabled(table, name, enabled=True)
        except psycopg.OperationalError:
            self._schedule(0.5, lambda: self._enable(table, name))
        else:
            self._end_fault(name)

    def _set_enabled(self, table: str, name: str, *, enabled: bool) -> None:
        column, value = "name", name
        if table == "routing_relaykey":
            column, value = "id", self._deployment.credentials[name].key_id
        with self._deployment.database() as database:
            statement = f"UPDATE {table} SET enabled = %s WHERE {column} = %s"
            database.execute(statement.encode(), [enabled, value])

    def _revoke(self) -> bool:
        key_id = self._deployment.credentials[REVOKED_OWNER].key_id
        statement = "UPDATE routing_relaykey SET revoked_at = now() WHERE id = %s"
        return self._by_sql("relay key revoked", statement, key_id)

    # Upstream and payloads

    def _upstream_mood(self) -> bool:
        mood = self._random.choice(list(UPSTREAM_PROFILES))
        if not self._start_fault("mood", f"upstream {mood}"):
            return False
        self._deployment.upstream.profile = UPSTREAM_PROFILES[mood]
        self._schedule(self._random.uniform(1, 6), self._usual_mood)
        return True

    def _usual_mood(self) -> None:
        self._deployment.upstream.profile = DEFAULT_PROFILE
        self._end_fault("mood")

    def _upstream_absent(self) -> bool:
        hosts = HOSTS if self._random.random() < 0.4 else HOSTS[:1]
        if not self._start_fault("host", f"upstream absent ({' and '.join(hosts)})"):
            return False
        for host in hosts:
            self._deployment.upstream.stop_host(host)
        self._schedule(self._random.uniform(0.5, 4), self._upstream_present)
        return True

    def _upstream_present(self) -> None:
        for host in HOSTS:
            self._deployment.upstream.start_host(host)
        self._end_fault("host")

    def _payloads_away(self) -> bool:
        """As a volume that is not mounted: the folder is there and empty. Processes that start then may look at it."""
        folder = self._deployment.payloads
        if not folder.exists() or not self._start_fault("payloads", "payload folder away"):
            return False
        folder.rename(folder.with_name("elsewhere"))
        folder.mkdir(mode=0o700)
        self._schedule(self._random.uniform(0.3, 2), self._payloads_back)
        return True

    def _payloads_back(self) -> None:
        folder = self._deployment.payloads
        written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        self._findings.record(PAYLOADS_STAY_AWAY, *written)
        folder.rename(folder.with_name(f"wrong-{time.monotonic_ns()}"))
        folder.with_name("elsewhere").rename(folder)
        self._end_fault("payloads")
