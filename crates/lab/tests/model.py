"""An independent model of a replay, in exact fractions: which requests does `count/period_s burst burst` deny?

Reads the path of a combined log, count, period in seconds and burst from the command line, and prints the requests, the
clients, the denied requests and the denied clients.
"""
import datetime
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction

path, count, period_s, burst = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
lines = []
for line in open(path, encoding="utf-8", errors="replace"):
    client, stamp = re.match(r"(\S+) \S+ .*? \[([^]]+)\]", line).groups()
    lines.append((int(datetime.datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z").timestamp()), client))

of_stamp, seen, arrivals = Counter(stamp for stamp, _ in lines), Counter(), []
for place, (stamp, client) in enumerate(lines):
    k = seen[stamp]
    seen[stamp] += 1
    arrivals.append((stamp * 10**9 + k * 10**9 // of_stamp[stamp], place, client))

rate = Fraction(count, period_s * 10**9)
level, last, denied = defaultdict(lambda: Fraction(burst)), {}, Counter()
for at, _, client in sorted(arrivals):
    level[client] = min(Fraction(burst), level[client] + rate * (at - last.get(client, at)))
    last[client] = at
    if level[client] >= 1:
        level[client] -= 1
    else:
        denied[client] += 1
print(len(lines), len(set(client for _, client in lines)), sum(denied.values()), len(denied))
