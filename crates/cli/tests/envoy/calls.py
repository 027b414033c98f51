"""200 calls of the rate limit service, made with the published files and held against a model of its own.

The model knows nothing of the server but its rules. All limits are slow against the time that the script takes, so what
is left is a whole number that does not depend on the clock; spans are held against the time before and after each call.

Usage: calls.py ADDRESS fixed-window|token-bucket
"""

import math
import random
import sys
import time

import grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2 as common
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.wrappers_pb2 import UInt64Value
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

CALLS = 200
OK, OVER = rls_pb2.RateLimitResponse.OK, rls_pb2.RateLimitResponse.OVER_LIMIT
UNLIMITED = 2**32 - 1
DAY = 86_400
PERIODS = {4: DAY, 5: 30 * DAY, 6: 365 * DAY, 7: 7 * DAY}
SERVICE = "envoy.service.ratelimit.v3.RateLimitService"

# Descriptors, and what the rules of calls.yaml say of them: (number, unit, name), None, or "unlimited"; then which of
# their values tell buckets apart.
KNOWN = [
    ([("address", "192.0.2.1")], (20, 4, "by_address"), [0]),
    ([("address", "192.0.2.2")], (20, 4, "by_address"), [0]),
    ([("plan", "gold"), ("user", "ann")], (15, 7, ""), [1]),
    ([("plan", "gold"), ("user", "bob")], (15, 7, ""), [1]),
    ([("plan", "gold")], None, []),
    ([("plan", "gold"), ("user", "ann"), ("more", "x")], None, []),
    ([("path", "/files/a")], (30, 5, ""), []),
    ([("path", "/files/b")], (30, 5, ""), []),
    ([("path", "/other")], (9, 6, ""), [0]),
    ([("path", "")], (9, 6, ""), [0]),
    ([("free", "x")], "unlimited", []),
    ([("blocked", "x")], (0, 4, ""), []),
    ([("nobody", "knows")], None, []),
    ([("shadow", "x")], "shadow", []),
]


class Model:
    """What is used of each bucket, and since when."""

    def __init__(self, windows):
        self.windows, self.used, self.since = windows, {}, {}

    def remaining(self, bucket, number):
        return number - self.used.get(bucket, 0)

    def take(self, bucket, hits, before, after):
        if hits:
            if not self.used.get(bucket, 0):
                self.since[bucket] = (before, after)
            self.used[bucket] = self.used.get(bucket, 0) + hits

    def give(self, bucket, hits):
        self.used[bucket] = max(0, self.used.get(bucket, 0) - hits)

    def span(self, bucket, number, period, missing, before, after):
        """The least and the most that an answer may say until so many more are there."""
        if not missing:
            return 0, 0
        if self.windows:
            return math.ceil(period - after % period), math.ceil(period - before % period)
        first, last = self.since[bucket]
        exact = missing * period / number
        return math.ceil(exact - (after - first) - 0.001), math.ceil(exact - (before - last) + 0.001)


def bucket_of(entries, rule, opened):
    return rule, tuple(entries[i][1] for i in opened), tuple(key for key, _ in entries)


def drawn(chance):
    """A descriptor, and what the model is to know of it."""
    entries, rule, opened = chance.choice(KNOWN)
    descriptor = common.RateLimitDescriptor(
        entries=[common.RateLimitDescriptor.Entry(key=key, value=value) for key, value in entries]
    )
    bucket = bucket_of(entries, rule, opened)
    if chance.random() < 0.15:
        number, unit = chance.choice([(4, 4), (6, 5)])
        descriptor.limit.requests_per_unit, descriptor.limit.unit = number, unit
        rule, bucket = (number, unit, ""), ("brought", number, unit, tuple(entries))
    own = chance.choice([None, None, None, 0, 1, 2, 3, 25])
    if own is not None:
        descriptor.hits_addend.CopyFrom(UInt64Value(value=own))
    is_refund = chance.random() < 0.12
    if is_refund:
        # The field is newer than the published package, so its bytes are written here: number 4, true.
        descriptor.MergeFromString(b"\x20\x01")
    return descriptor, rule, bucket, own, is_refund


def expected(model, call, drawn_ones, before, after):
    """The codes, and for each descriptor what its status must be; charges the model."""
    hits = [own if own is not None else max(call.hits_addend, 1) for _, _, _, own, _ in drawn_ones]
    is_limited = lambda rule: isinstance(rule, tuple)
    asked = {}
    for (_, rule, bucket, _, is_refund), count in zip(drawn_ones, hits):
        if is_limited(rule):
            asked[bucket] = asked.get(bucket, 0) + (0 if is_refund else count)
    left = {bucket: model.remaining(bucket, rule[0]) for _, rule, bucket, _, _ in drawn_ones if is_limited(rule)}
    denied = {bucket for bucket, count in asked.items() if count and count > left[bucket]}
    if not denied:
        for bucket, count in asked.items():
            model.take(bucket, count, before, after)
        charged = {bucket: left[bucket] - asked[bucket] for bucket in asked}
        for (_, rule, bucket, _, is_refund), count in zip(drawn_ones, hits):
            if is_limited(rule) and is_refund:
                model.give(bucket, count)
    statuses = []
    for _, rule, bucket, _, is_refund in drawn_ones:
        if rule == "unlimited":
            statuses.append((OK, None, UNLIMITED, None))
        elif not is_limited(rule):
            statuses.append((OK, None, 0, None))
        else:
            number, unit, _ = rule
            is_over = bucket in denied
            # A refund is told of after it was made, the others before it.
            shown = model.remaining(bucket, number) if denied or is_refund else charged[bucket]
            missing = asked[bucket] - shown if is_over else number - shown
            never = is_over and asked[bucket] > number
            span = None if never else model.span(bucket, number, PERIODS[unit], missing, before, after)
            if denied or is_refund or shown == model.remaining(bucket, number):
                statuses.append((OVER if is_over else OK, rule, shown, span))
            else:
                statuses.append((OK, rule, shown, "any"))
    return (OVER if denied else OK), statuses


def check_status(status, wanted, place):
    code, rule, left, span = wanted
    assert status.code == code, (place, "code", status, wanted)
    assert status.limit_remaining == left, (place, "left", status, wanted)
    assert status.HasField("current_limit") == (rule is not None), (place, "limit", status, wanted)
    assert not status.HasField("quota"), (place, "quota", status)
    if rule is not None:
        limit = status.current_limit
        assert (limit.requests_per_unit, limit.unit, limit.name) == rule, (place, "limit", status, wanted)
    if span == "any":
        return
    assert status.HasField("duration_until_reset") == (span is not None), (place, "span", status, wanted)
    if span is not None:
        shown = status.duration_until_reset
        assert span[0] <= shown.seconds <= span[1] and shown.nanos == 0, (place, "span", status, wanted)


def check_headers(answer, place):
    """They follow from the statuses: of denials the longest, else the one with the least left."""
    limited = [status for status in answer.statuses if status.HasField("current_limit")]
    if answer.overall_code == OVER:
        over = [status for status in limited if status.code == OVER]
        wait = lambda status: status.duration_until_reset.seconds if status.HasField("duration_until_reset") else 1e18
        binding = max(over, key=wait)
    else:
        binding = min(limited, key=lambda status: status.limit_remaining, default=None)
    names = [header.key for header in answer.response_headers_to_add]
    if binding is None:
        assert names == [], (place, answer)
        return
    values = {header.key: header.value for header in answer.response_headers_to_add}
    assert values["RateLimit-Limit"] == str(binding.current_limit.requests_per_unit), (place, answer)
    assert values["RateLimit-Remaining"] == str(binding.limit_remaining), (place, answer)
    has_span = binding.HasField("duration_until_reset")
    assert ("RateLimit-Reset" in values) == has_span, (place, answer)
    assert ("Retry-After" in values) == (has_span and answer.overall_code == OVER), (place, answer)
    if has_span:
        assert values["RateLimit-Reset"] == str(binding.duration_until_reset.seconds), (place, answer)


def away_from_the_edge_of_a_day():
    left = DAY - time.time() % DAY
    if left < 60:
        time.sleep(left + 1)


def run(address, algorithm):
    away_from_the_edge_of_a_day()
    channel = grpc.insecure_channel(address)
    stub, chance, model = rls_pb2_grpc.RateLimitServiceStub(channel), random.Random(7), Model(algorithm == "fixed-window")
    seen = {OK: 0, OVER: 0}
    for place in range(CALLS):
        ones = [drawn(chance) for _ in range(chance.randint(1, 4))]
        call = rls_pb2.RateLimitRequest(
            domain="edge", descriptors=[one[0] for one in ones], hits_addend=chance.choice([0, 0, 1, 2, 4])
        )
        before = time.time()
        answer = stub.ShouldRateLimit(call, timeout=20)
        after = time.time()
        overall, statuses = expected(model, call, ones, before, after)
        assert answer.overall_code == overall, (place, call, answer, statuses)
        assert len(answer.statuses) == len(statuses), (place, answer)
        for status, wanted in zip(answer.statuses, statuses):
            check_status(status, wanted, place)
        assert not answer.raw_body and not answer.request_headers_to_add, (place, answer)
        assert not answer.HasField("dynamic_metadata") and not answer.HasField("quota"), (place, answer)
        check_headers(answer, place)
        seen[overall] += 1
    assert min(seen.values()) >= CALLS // 10, seen
    print(f"{CALLS} calls agree")
    return channel, stub


def refused(stub, call):
    try:
        stub.ShouldRateLimit(call, timeout=20)
    except grpc.RpcError as error:
        return error.code()
    return None


def others(channel, stub):
    assert refused(stub, rls_pb2.RateLimitRequest(domain="edge")) == grpc.StatusCode.INVALID_ARGUMENT
    unknown = channel.unary_unary("/envoy.service.ratelimit.v3.RateLimitService/Other", lambda _: b"", lambda _: None)
    try:
        unknown(None, timeout=20)
        raise AssertionError("it is answered")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
    health = health_pb2_grpc.HealthStub(channel)
    for service in ["", SERVICE]:
        status = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=20).status
        assert status == health_pb2.HealthCheckResponse.SERVING, (service, status)
    first = next(iter(health.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=20)))
    assert first.status == health_pb2.HealthCheckResponse.SERVING
    print("health is told")
    database = ProtoReflectionDescriptorDatabase(channel)
    assert {SERVICE, "grpc.health.v1.Health"} <= set(database.get_services())
    compare(DescriptorPool(database))
    print("reflection tells what is published")


def compare(pool):
    """Each field that is told stands so in the published files; the newest is not in the package yet."""
    published = {
        "envoy.service.ratelimit.v3.RateLimitRequest": rls_pb2.RateLimitRequest.DESCRIPTOR,
        "envoy.service.ratelimit.v3.RateLimitResponse": rls_pb2.RateLimitResponse.DESCRIPTOR,
        "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor": common.RateLimitDescriptor.DESCRIPTOR,
    }
    for name, theirs in published.items():
        compare_message(pool.FindMessageTypeByName(name), theirs)


def compare_message(ours, theirs):
    assert ours.full_name == theirs.full_name and ours.file.name == theirs.file.name
    kind = lambda field: (field.number, field.type, field.is_repeated, field.message_type and field.message_type.full_name)
    for field in ours.fields:
        if field.name != "is_negative_hits":
            assert kind(field) == kind(theirs.fields_by_name[field.name]), field.full_name
    for nested in ours.nested_types:
        compare_message(nested, theirs.nested_types_by_name[nested.name])
    for one in ours.enum_types:
        values = lambda enum: {value.name: value.number for value in enum.values}
        assert values(one).items() <= values(theirs.enum_types_by_name[one.name]).items(), one.full_name


if __name__ == "__main__":
    others(*run(sys.argv[1], sys.argv[2]))
