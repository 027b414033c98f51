#!/usr/bin/env python3
"""Writes vectors/decisions.jsonl: decisions worked out from the definitions, in fractions.

It shares nothing with the Rust code. A token bucket is a fraction of tokens that is missing, and shrinks by the rate
times the time that has passed; a fixed window is a count and the number of its window; a sliding counter has the count
of the window before beside it; a sliding log is a list of what passed when. Only what is shown is rounded.
vectors/README.md describes the lines. The same file comes out every time.
"""

import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

US, MS, S = 10**3, 10**6, 10**9
MIN, H, DAY = 60 * S, 3600 * S, 86400 * S
UNITS = {"us": US, "ms": MS, "s": S, "min": MIN, "h": H, "day": DAY, "week": 7 * DAY, "month": 30 * DAY, "year": 365 * DAY}
LAST = 2**64 - 1
TOKENS, WINDOW, COUNTER, LOG = "token-bucket", "fixed-window", "sliding-counter", "sliding-log"


class Limit:
    """`60/min burst 10`, as three numbers."""

    def __init__(self, text):
        count, number, unit, burst = re.fullmatch(r"(\d+)/(\d*)([a-z]+)(?: burst (\d+))?", text).groups()
        self.count = int(count)
        self.period = int(number or 1) * UNITS[unit]
        self.burst = int(burst or count)
        self.rate = Fraction(self.count, self.period)


class TokenBucket:
    """What was missing, and when."""

    def __init__(self, limit):
        self.limit, self.lacks, self.at = limit, Fraction(0), 0

    def missing(self, now):
        return max(Fraction(0), self.lacks - self.limit.rate * max(0, now - self.at))

    def repaired(self, now):
        """A stamp further ahead than waiting explains becomes now, with what was missing."""
        other = TokenBucket(self.limit)
        other.lacks, other.at = self.lacks, self.at
        if (self.at - now) * self.limit.rate > max(self.lacks, self.limit.burst):
            other.at = now
        return other

    def charge(self, cost, now):
        self.lacks, self.at = self.missing(now) + cost, max(now, self.at)

    def time_for(self, tokens, now):
        if tokens <= 0:
            return 0
        return max(0, self.at - now) + math.ceil(tokens / self.limit.rate)

    def grant(self, tokens, now):
        self.lacks, self.at = max(Fraction(0), self.missing(now) - tokens), max(now, self.at)

    def owe(self, tokens, now):
        self.lacks, self.at = min(Fraction(2 * self.limit.burst), self.missing(now) + tokens), max(now, self.at)

    def replace(self, limit, now):
        self.lacks, self.at, self.limit = min(self.missing(now), limit.burst), max(now, self.at), limit
        part = math.ceil(self.lacks) - self.lacks
        if part and (part / limit.rate).denominator != 1:
            raise ValueError("the part of a token that was paid is no whole number of nanoseconds: it may be rounded")


class FixedWindow:
    """What was counted, and in which window."""

    def __init__(self, limit):
        self.limit, self.used, self.number = limit, 0, 0

    def open(self, now):
        return max(self.number, now // self.limit.period)

    def missing(self, now):
        return self.used if self.open(now) == self.number else 0

    def repaired(self, now):
        other = FixedWindow(self.limit)
        other.used, other.number = self.used, self.number
        if self.number * self.limit.period - now > self.limit.period:
            other.number = now // self.limit.period
        return other

    def charge(self, cost, now):
        self.used, self.number = self.missing(now) + cost, self.open(now)

    def time_for(self, tokens, now):
        return 0 if tokens <= 0 else (self.open(now) + 1) * self.limit.period - now

    def grant(self, tokens, now):
        self.used, self.number = max(0, self.missing(now) - tokens), self.open(now)

    def owe(self, tokens, now):
        self.used, self.number = min(2 * self.limit.burst, self.missing(now) + tokens), self.open(now)

    def replace(self, limit, now):
        start = max(self.open(now) * self.limit.period, now)
        self.used, self.number, self.limit = min(self.missing(now), limit.burst), start // limit.period, limit


class SlidingCounter:
    """What was counted in a window and in the one before it, and the number of the former."""

    def __init__(self, limit):
        self.limit, self.before, self.present, self.number = limit, 0, 0, 0

    def at(self, now):
        """The counts of the window that is open now."""
        other = SlidingCounter(self.limit)
        passed = max(0, now // self.limit.period - self.number)
        other.number = self.number + passed
        other.before, other.present = [(self.before, self.present), (self.present, 0)][passed] if passed < 2 else (0, 0)
        return other

    def roll(self, now):
        self.__dict__ = self.at(now).__dict__

    def covered(self, now):
        """The share of the window before that a period which ends now covers."""
        return 1 - Fraction(max(0, now - self.number * self.limit.period), self.limit.period)

    def missing(self, now):
        opened = self.at(now)
        return opened.before * opened.covered(now) + opened.present

    def repaired(self, now):
        other = SlidingCounter(self.limit)
        other.before, other.present, other.number = self.before, self.present, self.number
        if self.number * self.limit.period - now > self.limit.period:
            other.number = now // self.limit.period
            if other.number == 0:
                raise ValueError("there is no window before the first one")
        return other

    def charge(self, cost, now):
        self.roll(now)
        self.present += cost

    def time_for(self, tokens, now):
        """The edges of what is missing are joined by straight lines: the first of them that leads low enough."""
        if tokens <= 0:
            return 0
        period, opened, target = self.limit.period, self.at(now), self.missing(now) - tokens
        edges = [(opened.number + k) * period for k in (0, 1, 2)]
        for start, end in zip(edges, edges[1:]):
            high, low = self.missing(max(start, now)), self.missing(end)
            if low <= target:
                since = max(start, now)
                return since + math.ceil((end - since) * (high - target) / (high - low)) - now
        raise AssertionError("two windows later nothing is missing")

    def grant(self, tokens, now):
        self.roll(now)
        off = min(tokens, self.present)
        self.present, self.before = self.present - off, max(0, self.before - (tokens - off))

    def owe(self, tokens, now):
        self.roll(now)
        most = math.floor(2 * self.limit.burst - self.before * self.covered(now))
        self.present = max(self.present, min(self.present + tokens, most))

    def replace(self, limit, now):
        self.roll(now)
        missing, start = self.missing(now), max(now, self.number * self.limit.period)
        if limit.period != self.limit.period or missing > limit.burst:
            self.before, self.present, self.number = 0, min(math.ceil(missing), limit.burst), start // limit.period
        self.limit = limit


class SlidingLog:
    """What passed when: pairs of an instant and tokens, the oldest first."""

    def __init__(self, limit):
        self.limit, self.passed = limit, []

    def counting(self, now):
        return [(at, tokens) for at, tokens in self.passed if now - at < self.limit.period]

    def missing(self, now):
        return sum(tokens for _, tokens in self.counting(now))

    def repaired(self, now):
        other = SlidingLog(self.limit)
        ahead = self.passed and self.passed[-1][0] - now > self.limit.period
        other.passed = [(min(at, now) if ahead else at, tokens) for at, tokens in self.passed]
        return other

    def charge(self, cost, now):
        at = max([now] + [at for at, _ in self.passed])
        self.passed = self.counting(now)
        if cost == 0:
            return
        # There are no more entries than the count: a debt can make the newest take it in.
        if self.passed and (self.passed[-1][0] == at or len(self.passed) == self.limit.count):
            cost += self.passed.pop()[1]
        self.passed.append((at, cost))

    def time_for(self, tokens, now):
        if tokens <= 0:
            return 0
        leaving = 0
        for at, some in self.counting(now):
            leaving += some
            if leaving >= tokens:
                return at + self.limit.period - now
        raise AssertionError("no more than there is can leave")

    def take_off(self, tokens, order):
        """Takes tokens off the entries, the newest (-1) or the oldest (1) first."""
        kept = []
        for at, some in self.passed[::order]:
            off = min(some, tokens)
            tokens -= off
            kept += [(at, some - off)] if some > off else []
        self.passed = kept[::order]

    def grant(self, tokens, now):
        self.passed = self.counting(now)
        self.take_off(tokens, -1)

    def owe(self, tokens, now):
        self.charge(min(tokens, 2 * self.limit.burst - self.missing(now)), now)

    def replace(self, limit, now):
        self.passed = self.counting(now)
        self.take_off(max(0, self.missing(now) - limit.burst), 1)
        self.limit = limit


BUCKETS = {TOKENS: TokenBucket, WINDOW: FixedWindow, COUNTER: SlidingCounter, LOG: SlidingLog}


def ruling(bucket, cost, now):
    """Outcome and wait."""
    burst = bucket.limit.burst
    if cost > burst:
        return {"outcome": "never"}
    over = bucket.missing(now) + cost - burst
    if cost == 0 or over <= 0:
        return {"outcome": "allowed"}
    return {"outcome": "denied", "retry_after_ns": bucket.time_for(over, now)}


def shown(bucket, answer, now):
    """The answer with the numbers that go with it, in the order of the README."""
    missing = bucket.missing(now)
    numbers = {"remaining": max(0, math.floor(bucket.limit.burst - missing))}
    if "retry_after_ns" in answer:
        numbers["retry_after_ns"] = json_ns(answer["retry_after_ns"])
    return {"outcome": answer["outcome"]} | numbers | {"reset_after_ns": json_ns(bucket.time_for(missing, now))}


def json_ns(ns):
    """Few JSON readers keep an integer of more than 64 bits, so such a one is written as text."""
    return ns if ns <= LAST else str(ns)


def decide(bucket, cost, now):
    """One charge: the answer, and the bucket that follows."""
    repaired = bucket.repaired(now)
    answer = ruling(repaired, cost, now)
    if cost > 0 and answer["outcome"] == "allowed":
        repaired.charge(cost, now)
    changed = cost > 0 and answer["outcome"] != "never"
    return shown(repaired, answer, now), repaired if changed else bucket


def one_limit(name, limit, script, algorithm=TOKENS):
    """A line about one bucket. The script: (at, cost), (at, "grant" or "owe", tokens) or (at, "replace", limit)."""
    bucket, steps, latest, back = BUCKETS[algorithm](Limit(limit)), [], 0, False
    for at, *what in script:
        assert 0 <= at <= LAST
        back, latest = back or at < latest, max(latest, at)
        step = {"at_ns": at}
        if what[0] == "grant":
            bucket.grant(what[1], at)
            step["grant"] = what[1]
        elif what[0] == "owe":
            bucket = bucket.repaired(at)
            bucket.owe(what[1], at)
            step["owe"] = what[1]
        elif what[0] == "replace":
            bucket.replace(Limit(what[1]), at)
            step["replace"] = what[1]
        else:
            answer, bucket = decide(bucket, what[0], at)
            step |= ({} if what[0] == 1 else {"cost": what[0]}) | answer
        steps.append(step)
    head = {"name": name, "limit": limit, "algorithm": algorithm}
    return head | ({"clock": "steps-back"} if back else {}) | {"steps": steps}


def several_limits(name, limits, script, algorithm=TOKENS):
    """A line about several limits. The script: (at, [(limit, key, cost, mode), ...]); cost and mode may be left out."""
    rules = {limit: Limit(text) for limit, text in limits.items()}
    buckets, steps = {}, []
    for at, draws in script:
        charges = [(*draw, *(1, "enforce")[len(draw) - 2 :]) for draw in draws]
        sums = {}
        for limit, key, cost, _ in charges:
            sums[limit, key] = sums.get((limit, key), 0) + cost
            buckets.setdefault((limit, key), BUCKETS[algorithm](rules[limit]))
        answers = {place: ruling(buckets[place], cost, at) for place, cost in sums.items()}
        denying = [c for c in charges if c[3] == "enforce" and answers[c[0], c[1]]["outcome"] != "allowed"]
        for place, cost in sums.items():
            if not denying and answers[place]["outcome"] == "allowed":
                buckets[place].charge(cost, at)
        answers = {place: shown(buckets[place], answer, at) for place, answer in answers.items()}
        steps.append({"at_ns": at, "allowed": not denying} | binding(charges, answers) | {
            "charges": [
                {"limit": limit, "key": key}
                | ({} if cost == 1 else {"cost": cost})
                | ({} if mode == "enforce" else {"mode": mode})
                | answers[limit, key]
                for limit, key, cost, mode in charges
            ]
        })
    return {"name": name, "limits": limits, "algorithm": algorithm, "steps": steps}


def binding(charges, answers):
    """The first of those with the longest wait (never is the longest), else of those with the least remaining."""

    def rank(i):
        answer = answers[charges[i][0], charges[i][1]]
        match answer["outcome"]:
            case "never":
                return (0, 0)
            case "denied":
                return (1, -int(answer["retry_after_ns"]))
            case _:
                return (2, answer["remaining"])

    enforced = [i for i, charge in enumerate(charges) if charge[3] == "enforce"]
    return {"binding": min(enforced, key=rank)} if enforced else {}


class Dice:
    """The same numbers on every machine: a linear congruence, as in Knuth's MMIX."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 20) % n

    def of(self, things):
        return things[self.below(len(things))]


def any_gap(dice, limit, now):
    token = limit.period // max(1, limit.count)
    fill = limit.period * limit.burst // max(1, limit.count)
    edge = limit.period - now % limit.period
    span = dice.of([0, 0, 1, token, 2 * token, token // 2, fill, edge, edge, limit.period, dice.below(fill + 1)])
    return min(20 * 365 * DAY, max(0, span + dice.of([0, 0, 0, -1, 1])))


def any_cost(dice, limit):
    burst = limit.burst
    return dice.of([1, 1, 1, 1, 0, 2, burst, burst, burst + 1, 1 + dice.below(max(1, burst)), 1 + burst // 2])


def runs():
    """Runs drawn by dice: every quota, from several starts."""
    texts = """1/year  7/year  1/month burst 3  1/week  1/day  50/day burst 5  3/h  1000/h burst 10  59/min  60/min
        60/min burst 10  300/15min  5/90s  1/s  7/s  7/s burst 2  10/s  1000/s burst 1  999/s burst 5000  1/300ms  10/100ms
        1/90ms burst 2  1/7us  3/20us burst 4  1000000/s  999999937/s  1000000000/s  1000000000/s burst 1
        1/s burst 4294967296  4294967291/year  4294967296/year  8000/s burst 2  1/year burst 1000  0/min  0/year"""
    for i, text in enumerate(re.split(r"\s{2,}", texts)):
        limit = Limit(text)
        for j, start in enumerate([0, 1771404500 * S, 86399 * S + 7]):
            yield run(f"run of {text} from {start} ns", text, start, 100 * i + j, TOKENS)
        if "burst" not in text and limit.count:
            yield run(f"windows of {text}", text, i * S + 3, 100 * i + 50, WINDOW)
            yield run(f"windows of {text}, today", text, 1771404500 * S, 100 * i + 51, WINDOW)
        if "burst" not in text and 0 < limit.count <= 10_000:
            yield run(f"logs of {text}", text, i * S + 3, 100 * i + 80, LOG)
            for j, start in enumerate([i * S, 1771404500 * S]):
                yield run(f"logs of {text}, whole microseconds, {j + 1}", text, start, 100 * i + 81 + j, LOG, US)
        if "burst" not in text and limit.count and 2 * limit.count < limit.period:
            yield run(f"counters of {text}", text, i * S + 3, 100 * i + 60, COUNTER)
            for j, start in enumerate([i * S, 1771404500 * S, 1771404500 * S + limit.period // 3 * 2]):
                name = f"counters of {text}, whole microseconds, {j + 1}"
                yield run(name, text, start // US * US, 100 * i + 61 + j, COUNTER, US)


def run(name, text, start, seed, algorithm, tick=1):
    dice, limit, now, script = Dice(seed), Limit(text), start, []
    for _ in range(16):
        script.append((now, any_cost(dice, limit)))
        now = (now + any_gap(dice, limit, now) + tick - 1) // tick * tick
    return one_limit(name, text, script, algorithm)


def families():
    """Runs drawn by dice over several limits: keys, orders, duplicates and shadow."""
    sets = [
        {"minute": "5/min", "day": "50/day"},
        {"burst": "10/s burst 3", "hour": "20/h"},
        {"a": "7/s", "b": "3/s burst 9", "c": "59/min"},
        {"never": "0/min", "some": "5/min"},
        {"all": "1000000000/s burst 4294967296", "one": "1/year burst 2"},
    ]
    for i, limits in enumerate(sets):
        for j, algorithm in enumerate([TOKENS, TOKENS, WINDOW, COUNTER, COUNTER, LOG, LOG]):
            tick = US if j in (4, 6) else 1
            if algorithm != TOKENS and any("burst" in text for text in limits.values()):
                continue
            yield family(f"several limits {i + 1}.{j + 1}", limits, 7000 + 10 * i + j, algorithm, tick)


def family(name, limits, seed, algorithm, tick=1):
    dice, now, script = Dice(seed), 1000 * S, []
    names = list(limits)
    modes = {limit: "enforce" for limit in names} | {names[-1]: dice.of(["enforce", "shadow"])}
    for _ in range(12):
        charges = []
        for _ in range(1 + dice.below(4)):
            limit = dice.of(names)
            charges.append((limit, dice.of(["alice", "bob"]), dice.of([1, 1, 1, 0, 2, 3]), modes[limit]))
        script.append((now, charges))
        now = (now + any_gap(dice, Limit(limits[dice.of(names)]), now) + tick - 1) // tick * tick
    return several_limits(name, limits, script, algorithm)


def laws():
    """One small script for each clause of a law."""
    yield one_limit("law 1: burst at once, then the rate", "60/min burst 10",
        [(0, 1)] * 11 + [(t * S, 1) for t in range(1, 6)] + [(5 * S, 1), (5_999_999_999, 1), (6 * S, 1)])
    yield one_limit("law 1: the fullest minute passes burst and rate", "59/min",
        [(0, 59), (MIN - 1, 59), (MIN - 1, 58), (MIN, 1), (MIN, 1)])
    yield one_limit("law 1: a window passes twice its count around an edge", "59/min",
        [(59 * S, 59), (59 * S, 1), (61 * S, 59), (61 * S, 1)], WINDOW)
    yield one_limit("law 1: a token bucket does not", "59/min", [(59 * S, 59), (59 * S, 1), (61 * S, 59), (61 * S, 1), (61 * S, 1)])
    yield one_limit("law 1: the same one request at a time, in windows", "59/min",
        [(59 * S, 1)] * 60 + [(61 * S, 1)] * 60, WINDOW)
    yield one_limit("law 1: the same one request at a time, in a token bucket", "59/min",
        [(59 * S, 1)] * 60 + [(61 * S, 1)] * 4)
    yield one_limit("law 1: nor does a sliding counter", "59/min", [(59 * S, 59), (59 * S, 1), (61 * S, 59), (61 * S, 1), (61 * S, 0)], COUNTER)
    yield one_limit("law 1: the same one request at a time, in a counter", "59/min",
        [(59 * S, 1)] * 60 + [(61 * S, 1)] * 3 + [(63 * S, 1)] * 3, COUNTER)
    yield one_limit("law 1: nor does a sliding log", "59/min", [(59 * S, 59), (59 * S, 1), (61 * S, 59), (61 * S, 1), (119 * S - 1, 1), (119 * S, 59)], LOG)
    yield one_limit("law 1: the same one request at a time, in a log", "59/min",
        [(59 * S, 1)] * 60 + [(61 * S, 1)] * 3 + [(119 * S, 1)] * 60, LOG)
    yield one_limit("law 1: what passed counts for a period and no longer", "3/10s",
        [(t * S, 1) for t in (0, 3, 6, 9, 10, 12, 13, 15, 16, 19, 20)], LOG)
    yield one_limit("law 1: a counter passes twice its count in one period", "60/min",
        [(0, 60), (MIN - 1, 1), (2 * MIN - 1, 60), (2 * MIN - 1, 59), (2 * MIN, 1), (2 * MIN, 1)], COUNTER)
    yield one_limit("law 1: a counter across its edge", "10/min", [(50 * S, 10), (MIN - 1, 1), (MIN, 1), (66 * S - 1, 1), (66 * S, 1), (66 * S, 1), (90 * S, 4)], COUNTER)
    yield one_limit("law 1: the edges of windows belong to the later one", "2/min",
        [(MIN - 1, 2), (MIN - 1, 1), (MIN, 2), (MIN, 1), (2 * MIN - 1, 1), (2 * MIN, 1)], WINDOW)
    yield one_limit("law 2: frequent polling loses nothing", "7/s burst 1", [(t * 47_619_047, 1) for t in range(30)])
    yield one_limit("law 2: nothing is lost at a third of a nanosecond", "3/10us burst 2", [(t * 1111, 1) for t in range(30)])
    yield one_limit("law 2: a rate of a prime number per second", "999999937/s burst 1", [(t, 1) for t in range(20)])
    yield one_limit("law 2: one a nanosecond", "1000000000/s burst 1", [(t // 2, 1) for t in range(20)])
    yield one_limit("law 3: denials neither eat nor delay", "1/10s", [(0, 1)] + [(t * S, 1) for t in range(1, 10)] + [(10 * S, 1)])
    yield one_limit("law 3: a large denial leaves room for a small one", "10/min", [(0, 8), (0, 3), (0, 2), (0, 1)])
    yield one_limit("law 3: denials in a window", "3/s", [(0, 2), (1, 2), (2, 1), (3, 1), (S - 1, 1), (S, 3)], WINDOW)
    for text in ["7/s", "59/min", "1/90ms burst 2", "999999937/s", "1/year", "1000/h burst 10", "1/s burst 4294967296"]:
        limit = Limit(text)
        for cost in sorted({1, (limit.burst + 1) // 2, limit.burst}):
            first, _ = decide(drained(limit), cost, 5)
            wait = first["retry_after_ns"]
            yield one_limit(f"law 4: the wait for {cost} of {text}", text,
                [(5, limit.burst), (5, cost), (5 + wait - 1, cost), (5 + wait, cost)])
    yield one_limit("law 4: the wait in a window", "5/s", [(3 * S + 17, 5), (3 * S + 18, 1), (4 * S - 1, 1), (4 * S, 1)], WINDOW)
    yield one_limit("law 3: denials in a counter", "3/s", [(0, 2), (1, 2), (2, 1), (3, 1), (S, 1), (S, 2), (S + 1, 1), (2 * S, 3)], COUNTER)
    for text in ["7/s", "59/min", "10/7us", "1/year", "1/90ms", "1000/h", "4294967296/year"]:
        limit = Limit(text)
        for at in (5, limit.period // 2 + 1, limit.period - 1):
            for before, cost in sorted({(0, 1), (1, 1), (0, limit.burst), (1, (limit.burst + 1) // 2)}):
                counter, filled = SlidingCounter(limit), at + before * (limit.period * 2 // 3)
                counter.charge(limit.burst, at)
                extra = math.floor(limit.burst - counter.missing(filled)) if before else 0
                counter.charge(extra, filled)
                wait = counter.time_for(counter.missing(filled) + cost - limit.burst, filled)
                if wait:
                    yield one_limit(f"law 4: the wait for {cost} of {text} in a counter, {at} {before}", text,
                        [(at, limit.burst), (filled, extra), (filled, cost), (filled + wait - 1, cost), (filled + wait, cost)], COUNTER)
    yield one_limit("law 5: above the burst is never", "10/s burst 5", [(0, 6), (0, 5), (0, 6), (0, 1), (H, 6)])
    yield one_limit("law 5: the largest cost", "10/s", [(0, LAST), (0, 10)])
    yield one_limit("law 5: zero is never", "0/h", [(0, 1), (0, 0), (DAY, 1), (DAY, LAST)])
    yield one_limit("law 5: never in a window", "4/s", [(0, 5), (0, 4), (S, 5), (S, LAST)], WINDOW)
    yield one_limit("law 3: denials in a log", "3/s", [(0, 2), (1, 2), (2, 1), (3, 1), (S, 1), (S, 2), (S + 1, 1), (S + 2, 1)], LOG)
    yield one_limit("law 4: the waits of a log, for each cost", "10/min",
        [(S, 3), (2 * S, 1), (4 * S, 4), (8 * S, 2)] + [(10 * S, cost) for cost in range(1, 11)]
        + [(61 * S - 1, 3), (61 * S, 4), (61 * S, 3), (62 * S - 1, 1), (62 * S, 1)], LOG)
    yield one_limit("law 5: never in a log", "4/s", [(0, 5), (0, 4), (S, 5), (S, LAST), (2 * S, 4)], LOG)
    yield one_limit("law 6: a look in a log", "2/min", [(0, 0), (5, 1), (7, 1), (7, 0), (MIN + 4, 0), (MIN + 5, 0), (MIN + 6, 0), (MIN + 7, 0), (MIN + 7, 2)], LOG)
    yield one_limit("law 5: never in a counter", "4/s", [(0, 5), (0, 4), (S, 5), (S, LAST), (2 * S, 4)], COUNTER)
    yield one_limit("law 6: a look changes nothing", "2/min", [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0), (29 * S, 0), (30 * S, 0), (30 * S, 1)])
    yield one_limit("law 6: a look in a window", "2/min", [(0, 0), (0, 2), (0, 0), (MIN - 1, 0), (MIN, 0)], WINDOW)
    yield one_limit("law 6: a look in a counter", "2/min", [(0, 0), (0, 2), (0, 0), (MIN - 1, 0), (MIN, 0), (90 * S - 1, 0), (90 * S, 0), (2 * MIN - 1, 0), (2 * MIN, 0)], COUNTER)
    yield one_limit("law 8: a counter weighs until the next window is over", "3/min", [(59 * S, 1), (MIN, 2), (2 * MIN, 0), (2 * MIN, 1), (3 * MIN, 0), (4 * MIN, 3)], COUNTER)
    yield one_limit("law 8: a counter that was left alone for a window has nothing before it", "3/min", [(0, 3), (2 * MIN, 3), (4 * MIN - 1, 2), (4 * MIN, 3)], COUNTER)
    yield one_limit("law 8: full again is as never used", "3/min burst 2", [(5, 2), (20 * S + 5, 0), (40 * S + 4, 0), (40 * S + 5, 0), (40 * S + 5, 2), (H, 2)])
    yield one_limit("law 8: a full bucket starts anew between two of its steps", "7/s burst 1", [(0, 1), (150 * MS, 1), (292_857_142, 1), (292_857_143, 1)])
    yield one_limit("law 9: small steps back give and take nothing", "1/s burst 10", [(20 * S, 3), (15 * S, 1), (20 * S, 0), (21 * S, 0), (25 * S, 0)])
    yield one_limit("law 9: the furthest step that waiting explains", "1/s burst 10", [(20 * S, 3), (10 * S, 1), (20 * S, 0), (21 * S, 0)])
    yield one_limit("law 9: a nanosecond further is repaired", "1/s burst 10", [(20 * S, 3), (10 * S - 1, 1), (20 * S - 1, 0), (20 * S, 0)])
    yield one_limit("law 9: a denial writes the repair", "1/s burst 2", [(90 * S, 2), (S, 1), (2 * S, 1), (2 * S, 1)])
    yield one_limit("law 9: a look writes no repair", "1/s burst 2", [(90 * S, 2), (S, 0), (91 * S, 1), (91 * S, 1)])
    yield one_limit("law 9: time runs on after a step back", "1/s burst 2", [(90 * S, 2), (89 * S, 1), (90 * S, 1), (91 * S, 1)])
    yield one_limit("law 9: a closed window does not open again", "2/min", [(5 * MIN, 2), (4 * MIN + 1, 1), (4 * MIN + 1, 0), (5 * MIN, 1), (6 * MIN, 1)], WINDOW)
    yield one_limit("law 9: a window more than a period ahead becomes the present one", "2/min", [(5 * MIN, 2), (4 * MIN - 1, 1), (4 * MIN, 1)], WINDOW)
    yield one_limit("law 9: a counter's closed window does not open again", "2/min", [(5 * MIN, 2), (4 * MIN + 1, 1), (4 * MIN + 1, 0), (5 * MIN, 1), (330 * S, 1), (6 * MIN, 1), (7 * MIN, 1)], COUNTER)
    yield one_limit("law 9: in a counter the earlier window weighs in full until its clock is back", "4/min", [(4 * MIN, 3), (5 * MIN, 1), (4 * MIN + 1, 1), (5 * MIN, 1), (320 * S, 1)], COUNTER)
    yield one_limit("law 9: a counter more than a period ahead becomes the present one", "2/min", [(5 * MIN, 2), (4 * MIN - 1, 1), (4 * MIN, 1), (4 * MIN + 30 * S, 1)], COUNTER)
    yield one_limit("law 9: a look repairs no counter", "2/min", [(5 * MIN, 2), (MIN, 0), (5 * MIN, 1)], COUNTER)
    yield one_limit("law 9: in a log nothing leaves twice", "2/min", [(5 * MIN, 2), (4 * MIN, 1), (4 * MIN, 0), (5 * MIN, 1), (6 * MIN - 1, 1), (6 * MIN, 1)], LOG)
    yield one_limit("law 9: a log that stands more than a period ahead becomes the present", "2/min", [(5 * MIN, 1), (4 * MIN - 1, 1), (4 * MIN, 1), (5 * MIN - 2, 1), (5 * MIN - 1, 1)], LOG)
    yield one_limit("law 9: a denial repairs a log", "2/min", [(5 * MIN, 2), (3 * MIN, 1), (4 * MIN - 1, 1), (4 * MIN, 1)], LOG)
    yield one_limit("law 9: a look repairs no log", "2/min", [(5 * MIN, 2), (MIN, 0), (5 * MIN, 1)], LOG)
    yield one_limit("law 9: what passes after a step back leaves with the newest", "3/min", [(5 * MIN, 1), (270 * S, 1), (6 * MIN - 1, 2), (6 * MIN, 3)], LOG)
    yield one_limit("law 10: a log raised and lowered", "5/min", [(0, 2), (S, 3), (2 * S, "replace", "8/min"), (2 * S, 4), (2 * S, 2), (2 * S, "replace", "4/min"), (2 * S, 1), (61 * S, 1), (61 * S, 2), (62 * S, 2)], LOG)
    yield one_limit("law 10: a log into another period", "5/min", [(0, 2), (30 * S, 3), (MIN, "replace", "5/h"), (MIN, 3), (MIN, 2), (H + 30 * S - 1, 1), (H + 30 * S, 3)], LOG)
    yield one_limit("law 10: raised, the growth is there at once", "5/min", [(0, 5), (0, 1), (0, "replace", "8/min"), (0, 4), (0, 3), (0, 1)])
    yield one_limit("law 10: lowered, it is gone at once", "10/min", [(0, 3), (0, "replace", "5/min"), (0, 3), (0, 2), (0, 1)])
    yield one_limit("law 10: a debt above the new burst becomes the new burst", "10/s", [(0, 10), (0, "replace", "2/s"), (0, 1), (500 * MS, 1), (500 * MS, 1), (S, 2)])
    yield one_limit("law 10: another rate, the same burst", "60/min burst 10", [(0, 10), (5 * S, "replace", "120/min burst 10"), (5 * S, 6), (5 * S, 5), (5_500 * MS, 1)])
    yield one_limit("law 10: part of a token goes over", "5/h", [(0, 5), (MIN, "replace", "50/h"), (MIN, 46), (MIN, 45), (66 * S, 1)])
    yield one_limit("law 10: zero and back is the one gift", "4/s", [(0, 4), (0, "replace", "0/s"), (0, 1), (0, "replace", "4/s"), (0, 4)])
    yield one_limit("law 10: the same limit again", "4/s", [(0, 4), (250 * MS, "replace", "4/s"), (250 * MS, 2), (250 * MS, 1)])
    yield one_limit("law 10: a window takes its count along", "10/min", [(MIN, 6), (MIN, "replace", "8/min"), (MIN, 3), (MIN, 2), (2 * MIN, 8)], WINDOW)
    yield one_limit("law 10: a window's count above the new one becomes it", "10/min",
        [(MIN, 10), (MIN, "replace", "4/min"), (MIN, 1), (MIN, "replace", "10/min"), (MIN, 7), (MIN, 6)], WINDOW)
    yield one_limit("law 10: into a longer window", "10/min", [(61 * MIN, 6), (61 * MIN, "replace", "8/h"), (61 * MIN, 2), (62 * MIN, 1), (2 * H, 8)], WINDOW)
    yield one_limit("law 10: an old window's count is gone", "10/min", [(MIN, 6), (2 * MIN, "replace", "8/h"), (2 * MIN, 8)], WINDOW)
    yield one_limit("law 10: a counter takes both counts along", "10/min", [(MIN, 6), (2 * MIN, 3), (2 * MIN, "replace", "12/min"), (2 * MIN, 4), (2 * MIN, 3), (150 * S, 3)], COUNTER)
    yield one_limit("law 10: a counter that owes more than the new count owes the new count", "10/min",
        [(MIN, 10), (75 * S, "replace", "4/min"), (75 * S, 1), (2 * MIN, 1), (135 * S, 1), (135 * S, "replace", "10/min"), (135 * S, 6), (135 * S, 5)], COUNTER)
    yield one_limit("law 10: a counter into a longer period, rounded up to whole tokens", "10/min", [(61 * MIN, 7), (62 * MIN + 30 * S, "replace", "9/h"), (62 * MIN + 30 * S, 6), (62 * MIN + 30 * S, 5), (2 * H, 1), (3 * H, 9)], COUNTER)
    yield one_limit("law 10: an old counter's counts are gone", "10/min", [(MIN, 6), (3 * MIN, "replace", "8/h"), (3 * MIN, 8)], COUNTER)
    yield one_limit("grant: gives back, at most to full", "10/min", [(0, 10), (0, "grant", 4), (0, 5), (0, 4), (0, "grant", 100), (0, 10), (0, 1)])
    yield one_limit("grant: keeps what had come back in part", "1/10s burst 3", [(0, 3), (5 * S, "grant", 1), (5 * S, 1), (9 * S, 1), (10 * S, 1)])
    yield one_limit("grant: in a window", "3/min", [(0, 3), (S, "grant", 2), (S, 3), (S, 2), (S, 1)], WINDOW)
    yield one_limit("grant: in a counter, the present count first", "4/min", [(0, 4), (90 * S, 1), (90 * S, "grant", 2), (90 * S, 0), (90 * S, 3), (90 * S, 2), (90 * S, "grant", 9), (90 * S, 4)], COUNTER)
    yield one_limit("grant: a counter that has only an earlier count left", "4/min", [(0, 4), (MIN, "grant", 1), (MIN, 2), (MIN, 1), (MIN, "grant", 1), (80 * S, 0), (2 * MIN, 4)], COUNTER)
    yield one_limit("debt: what is owed is waited for", "10/min", [(0, 10), (0, "owe", 4), (0, 1), (0, 0), (24 * S, 1), (30 * S - 1, 1), (30 * S, 1), (30 * S, 1)])
    yield one_limit("debt: at most one further burst", "10/min", [(0, 10), (0, "owe", 400), (0, 0), (0, "owe", 1), (0, 0), (66 * S - 1, 1), (66 * S, 1), (3 * MIN, 10)])
    yield one_limit("debt: part of a token is waited for too", "1/10s burst 3", [(0, 2), (5 * S, "owe", 3), (5 * S, 1), (29 * S, 1), (30 * S, 1)])
    yield one_limit("debt: the largest part of a debt is kept at its bound", "7/s burst 2", [(0, 2), (100 * MS, "owe", 9), (100 * MS, 1), (100 * MS, 0), (S, 2)])
    yield one_limit("debt: what is given back pays it first", "10/min", [(0, 10), (0, "owe", 4), (0, "grant", 3), (0, 0), (0, "grant", 3), (0, 3), (0, 2)])
    yield one_limit("debt: of a full bucket it is a charge", "10/min", [(0, "owe", 4), (0, 7), (0, 6), (0, 1)])
    yield one_limit("debt: a changed limit cuts it to the new burst", "10/s", [(0, 10), (0, "owe", 10), (0, "replace", "20/s"), (0, 1), (50 * MS, 1), (S, "replace", "5/s"), (S, 5)])
    yield one_limit("debt: in a window, until it is over", "10/min", [(MIN, 10), (MIN, "owe", 40), (MIN, "grant", 9), (MIN, 1), (MIN, "grant", 2), (MIN, 1), (2 * MIN, 10)], WINDOW)
    yield one_limit("grant: in a log, those that passed last", "4/min", [(0, 2), (S, 2), (2 * S, "grant", 3), (2 * S, 0), (2 * S, 3), (MIN, 1), (MIN + S, 1), (MIN + S, "grant", 9), (MIN + S, 4)], LOG)
    yield one_limit("debt: in a log it leaves like what passed", "10/min", [(0, 10), (S, "owe", 5), (S, 1), (MIN, 5), (MIN, 1), (61 * S, 5)], LOG)
    yield one_limit("debt: in a log no more than two bursts", "10/min", [(0, 10), (S, "owe", 40), (S, 0), (MIN, 1), (61 * S - 1, 1), (61 * S, 10)], LOG)
    yield one_limit("debt: a log of one takes it in", "1/min", [(0, 1), (S, "owe", 9), (MIN, 1), (61 * S - 1, 1), (61 * S, 1)], LOG)
    yield one_limit("debt: in a counter it weighs like any other count", "10/min", [(MIN, 10), (MIN, "owe", 5), (MIN, 1), (2 * MIN, 1), (144 * S - 1, 1), (144 * S, 1), (3 * MIN, 9)], COUNTER)
    yield one_limit("debt: in a counter no more than two bursts", "10/min", [(MIN, 10), (MIN, "owe", 40), (MIN, 0), (100 * S, "owe", 1), (2 * MIN, "owe", 1), (125 * S, "owe", 9), (125 * S, 1), (3 * MIN, 1), (5 * MIN, 10)], COUNTER)
    yield one_limit("debt: a step back that its size explains keeps it", "1/s burst 10", [(40 * S, 10), (40 * S, "owe", 10), (20 * S, 1), (40 * S, 0), (51 * S, 1)])
    yield one_limit("debt: a nanosecond further is repaired and keeps it too", "1/s burst 10", [(40 * S, 10), (40 * S, "owe", 10), (20 * S - 1, 1), (31 * S - 1, 1), (31 * S - 1, 0)])
    for text in ["7/s", "59/min burst 3", "999999937/s", "1/year", "1/s burst 4294967296"]:
        limit = Limit(text)
        first, _ = decide(drained(limit, limit.burst), 1, 5)
        wait = first["retry_after_ns"]
        if isinstance(wait, int) and 5 + wait <= LAST:
            yield one_limit(f"debt: the longest wait under {text}", text,
                [(5, limit.burst), (5, "owe", limit.burst), (5, 1), (5 + wait - 1, 1), (5 + wait, 1)])
    yield one_limit("the end of time", "10/s", [(LAST - S, 10), (LAST - S, 1), (LAST, 10), (LAST, 1)])
    yield one_limit("the end of time in windows", "10/s", [(LAST - S, 10), (LAST, 10), (LAST, 1)], WINDOW)
    yield one_limit("the end of time in counters", "10/s", [(LAST - 2 * S, 10), (LAST - S, 10), (LAST - S, 1), (LAST, 10), (LAST, 1)], COUNTER)
    yield one_limit("the end of time in logs", "10/s", [(LAST - 2 * S, 10), (LAST - S, 10), (LAST - S, 1), (LAST, 10), (LAST, 1)], LOG)
    yield several_limits("law 7: one that denies spares the other", {"a": "1/min", "b": "5/min"},
        [(0, [("a", "x"), ("b", "x")])] * 3 + [(0, [("b", "x")])])
    yield several_limits("law 7: the order does not matter", {"a": "1/min", "b": "5/min"},
        [(0, [("b", "x"), ("a", "x")])] * 3 + [(0, [("b", "x")])])
    yield several_limits("law 7: twice the same is summed", {"a": "5/min"},
        [(0, [("a", "x", 2), ("a", "x", 2)]), (0, [("a", "x", 1), ("a", "x", 1)]), (0, [("a", "x"), ("a", "y")]), (0, [("a", "x"), ("a", "y", 9)])])
    yield several_limits("law 7: three of five and three of five are six", {"a": "5/min"}, [(0, [("a", "x", 3), ("a", "x", 3)]), (0, [("a", "x", 5)])])
    yield several_limits("law 7: shadow denies nobody", {"a": "5/min", "b": "1/min"},
        [(0, [("a", "x"), ("b", "x", 1, "shadow")])] * 3 + [(MIN, [("b", "x", 1, "shadow"), ("a", "x")])])
    yield several_limits("law 7: shadow is charged only if the others allowed", {"a": "1/min", "b": "5/min"},
        [(0, [("a", "x"), ("b", "x", 1, "shadow")])] * 3 + [(0, [("b", "x", 0, "shadow")])])
    yield several_limits("law 7: shadow alone allows", {"a": "1/min"}, [(0, [("a", "x", 1, "shadow")])] * 3)
    yield several_limits("law 7: never binds before any wait", {"a": "1/year", "b": "3/s"},
        [(0, [("a", "x")]), (0, [("a", "x"), ("b", "x", 4)]), (0, [("b", "x", 3)])])
    yield several_limits("law 7: the longest wait binds", {"a": "1/s", "b": "1/min"}, [(0, [("a", "x"), ("b", "x")])] * 2)
    yield several_limits("law 7: the least remaining binds", {"a": "9/s", "b": "4/min"}, [(0, [("a", "x"), ("b", "x")])] * 4)
    yield several_limits("law 7: in windows", {"a": "2/min", "b": "3/h"},
        [(t * MIN, [("a", "x"), ("b", "x")]) for t in (0, 0, 0, 1, 1, 60, 60)], WINDOW)
    yield several_limits("law 7: in counters", {"a": "2/min", "b": "3/h"},
        [(t * MIN, [("a", "x"), ("b", "x")]) for t in (0, 0, 0, 1, 1, 2, 60, 60, 120)], COUNTER)
    yield several_limits("law 7: in logs", {"a": "2/min", "b": "3/h"},
        [(t * MIN, [("a", "x"), ("b", "x")]) for t in (0, 0, 0, 1, 1, 2, 60, 60, 120)], LOG)
    yield several_limits("law 7: twice the same log is summed", {"a": "5/min"},
        [(0, [("a", "x", 2), ("a", "x", 2)]), (0, [("a", "x", 1), ("a", "x", 1)]), (0, [("a", "x"), ("a", "y")]), (0, [("a", "x"), ("a", "y", 9)])], LOG)
    yield several_limits("law 7: no charge at all", {"a": "1/min"}, [(0, [])])


def drained(limit, debt=0):
    bucket = TokenBucket(limit)
    bucket.charge(limit.burst + debt, 5)
    return bucket


def reports():
    """What users of other limiters reported, as far as one decision can show it. Named by the id of the report."""
    for shift in (0, 1, 17 * MS, 23_456 * MS):
        yield one_limit(f"BR-001 shifted by {shift} ns", "10/min", [(59_900 * MS + shift, 1)] * 10 + [(MIN + shift, 1)] * 10)
    yield one_limit("BR-003 (a)", "60/min", [(0, 1)] * 60 + [(t * S, 1) for t in range(1, 60)])
    yield one_limit("BR-003 (b)", "60/min burst 1", [(0, 1)] * 2 + [(t * S, 1) for t in range(1, 60)])
    yield one_limit("BR-005", "5/s", [(0, 1)] * 6 + [(2 * S, 1)] * 6)
    yield one_limit("BR-006", "20/s burst 5", [(0, 5), (250 * MS, 5), (250 * MS, 1), (300 * MS, 1), (300 * MS, 1)])
    yield one_limit("BR-008", "10/s", [(0, 1)] * 10 + [(H, 1)] * 12)
    yield one_limit("BR-010", "1/h", [(0, 1), (H - MS, 1), (H, 1)])
    yield one_limit("BR-012", "10/s", [(0, 10)] + [(t * 10 * MS, 1) for t in range(1, 101)])
    yield one_limit("BR-014, the first milliseconds", "1000/s", [(0, 1000)] + [(t * MS // 2, 1) for t in range(1, 60)])
    yield one_limit("BR-015", "1/s", [(t * 600 * MS, 1) for t in range(9)])
    yield one_limit("BR-017 k", "1000/min burst 1001", [(t * MS, 1) for t in range(3)])
    yield one_limit("BR-017 j", "6000/s burst 6001", [(0, 1)] * 3)
    yield one_limit("BR-022", "100/180s", [(179 * S, 1)] * 100 + [(300 * S, 1)] * 67 + [(300 * S, 0)], COUNTER)
    yield one_limit("BR-024 (b)", "10/min", [(0, 1)] * 11 + [(t * 10 * S, 1) for t in range(1, 20)])
    yield one_limit("BR-028", "1/s burst 10", [(20 * S, 1)] * 3 + [(11 * S, 1), (20_001 * MS, 1)])
    yield one_limit("BR-028, second run", "1/s burst 10", [(20 * S, 1)] * 3 + [(9 * S, 1), (20_001 * MS, 1)])
    yield one_limit("BR-030", "5/s", [(200_000 * S, 1)] * 5 + [(27_200 * S, 1)] + [(27_201 * S, 1)] * 5)
    yield one_limit("BR-033", "10/s", [(S, 1), (999 * MS, 1), (0, 1), (LAST, 1), (0, 1)] + [(S, 1)] * 10)
    for name, idle in {"half a day": 43_200 * S, "a year": 365 * DAY, "100 years": 36_500 * DAY}.items():
        yield one_limit(f"BR-036 after {name}", "1000000/s", [(0, 10**6), (idle, 10**6), (idle, 1), (idle + 999, 1), (idle + 1000, 1)])
    yield one_limit("BR-038, the first milliseconds", "8000/s burst 2", [(t // 3 * MS, 1) for t in range(30)])
    yield one_limit("BR-038 at one a nanosecond", "1000000000/s burst 2", [(t // 3, 1) for t in range(30)])
    yield one_limit("BR-040", "0/h", [(0, 1), (H, 1)])
    yield one_limit("BR-041", "0/min", [(0, 1), (0, 1)])
    yield one_limit("BR-043", "300/min", [(0, 301), (0, 1)])
    yield one_limit("BR-045", "50/50s", [(0, 50), (0, "owe", 10), (0, 0), (0, 1), (11 * S - 1, 1), (11 * S, 1), (MIN + S, 0)])
    yield one_limit("BR-046", "10/min", [(0, 0), (0, 10), (0, 0)])
    yield one_limit("BR-048", "2/min", [(0, 1)] * 3 + [(29_999 * MS, 1), (30 * S, 1)])
    yield one_limit("BR-050", "1/s burst 4294967296", [(0, 0), (0, 4294967296), (0, 1)])
    yield one_limit("BR-051", "3/min burst 1", [(0, 1), (500 * MS, 1), (19_600 * MS, 1), (20_500 * MS, 1)])
    yield one_limit("BR-053", "1/s burst 5", [(0, 1)] * 6)
    yield one_limit("BR-055", "20/min", [(1_771_404_500 * S, 1)] * 21)
    yield one_limit("BR-056", "5/min", [(t * 400 * MS, 1) for t in range(6)])
    yield one_limit("BR-058", "1/5ms burst 1", [(0, 1), (100 * US, 1), (4 * MS, 1), (4600 * US, 1), (4_999 * US, 1), (4_999_999, 1), (5 * MS, 1)])
    yield one_limit("BR-060", "1/300ms", [(0, 1), (0, 1), (0, 2)])
    for start in (1, 7, 999_999_937):
        yield one_limit(f"BR-062 from {start} ns", "1/90ms burst 2", [(start + t, 1) for t in (0, 1_700 * US, 3_400 * US, 90 * MS)])
    yield several_limits("BR-066", {"limiter": "600/min", "other": "600/min"}, [(0, [("limiter", "client")])] * 2 + [(0, [("limiter", "client"), ("other", "client")])])
    script = [(0, [("minute", "client-1"), ("day", "client-1")])] * 6
    script += [(k * MIN, [("minute", "client-1"), ("day", "client-1")]) for k in range(1, 11) for _ in range(5)]
    yield several_limits("BR-067", {"minute": "5/min", "day": "50/day"}, script)
    yield one_limit("BR-069", "10/min", [(0, 20)] + [(0, 1)] * 10)
    yield one_limit("BR-061", "3/10s", [(0, 1), (4 * S, 1), (8 * S, 1), (9 * S, 1), (10 * S, 1), (10 * S, 1)], LOG)
    yield one_limit("BR-101", "10/60s", [(7 * S, 1)] * 50, LOG)
    yield one_limit("BR-147", "5/60s", [(3 * S, 1)] * 50, LOG)
    yield one_limit("BR-074", "5/h", [(0, 1)] * 5 + [(MIN, "replace", "50/h"), (MIN, 1)])
    yield one_limit("BR-076", "10/min", [(0, "replace", "100/min")] + [(0, 1)] * 50 + [(0, 0)])
    yield one_limit("BR-078", "10/s", [(0, 1)] * 3 + [(0, "replace", "5/s")] + [(0, 1)] * 10 + [(0, "replace", "10/s")] + [(0, 1)] * 6)
    script = [(0, 3)]
    for t in range(1, 12):
        script += [(t * S, "replace", "1/min burst 3"), (t * S, 1)]
    yield one_limit("BR-079", "1/min burst 3", script)
    yield one_limit("BR-081", "10/s", [(0, 10), (0, "replace", "12/s")] + [(0, 1)] * 12)
    yield one_limit("BR-083", "5/min", [(0, 1)] * 6 + [(0, "replace", "100/min"), (0, 1)])
    yield one_limit("BR-084", "10/h", [(0, 1)] * 12 + [(MIN, "replace", "20/h")] + [(MIN, 1)] * 15)
    yield one_limit("BR-137", "1/2300ms", [(0, 1), (0, 1)])
    yield several_limits("BR-138", {"d1": "10/min", "d2": "10000/min"}, [(0, [("d1", "x"), ("d2", "x", 1500)])] * 8)
    for names in (["a", "b"], ["b", "a"]):
        script = [(0, [(name, "client") for name in names])] * 31 + [(0, [("b", "client", 0)])]
        yield several_limits(f"BR-139, {names[0]} first", {"a": "10/min", "b": "30/30min"}, script)
    both = [("default", "client"), ("p1", "client")]
    yield several_limits("BR-141", {"default": "1/s", "p1": "100/2s"}, [(0, both)] * 50 + [(0, [("default", "client")])] * 2 + [(0, [("p1", "client", 0)])])
    yield one_limit("BR-143", "100/100s", [(99 * S, 50), (105 * S, 10), (110 * S, 0)] + [(110 * S, 1)] * 46, COUNTER)
    yield one_limit("BR-145", "1/1000ms", [(990 * MS, 1), (1_010 * MS, 1), (1_500 * MS, 1), (2 * S, 1)], COUNTER)
    yield one_limit("BR-163", "5/min", [(0, 1)] * 6)
    yield one_limit("BR-188 k", "30/min burst 16", [(0, 1)] * 17)
    yield one_limit("BR-188 j", "2/s burst 1", [(0, 1)] * 2)


def main():
    lines = [*laws(), *reports(), *runs(), *families()]
    names = [line["name"] for line in lines]
    assert len(set(names)) == len(names), "every line has a name of its own"
    out = Path(__file__).resolve().parent.parent / "vectors" / "decisions.jsonl"
    out.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    print(f"{len(lines)} lines, {sum(len(line['steps']) for line in lines)} steps: {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
