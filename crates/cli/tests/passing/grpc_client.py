"""A gRPC client that tries all kinds of calls on the server beside it, through whatever stands between.

python3 grpc_client.py HOST:PORT [AUTHORITIES]
"""

import queue
import sys

import grpc

PATIENCE_S = 30


def same(found, expected):
    if found != expected:
        raise SystemExit(f"found {found!r}, expected {expected!r}")


def check_unary(channel):
    answer, call = channel.unary_unary("/test.Bytes/Unary").with_call(b"\x01\x02\x03", timeout=PATIENCE_S)
    same(answer, b"\x03\x02\x01")
    same(dict(call.initial_metadata()).get("x-head"), "first")
    trailers = dict(call.trailing_metadata())
    same((trailers.get("x-sum"), trailers.get("x-blob-bin")), ("6", b"\x00\xff"))


def check_failure(channel):
    try:
        channel.unary_unary("/test.Bytes/Fail")(b"", timeout=PATIENCE_S)
    except grpc.RpcError as error:
        same((error.code(), error.details()), (grpc.StatusCode.FAILED_PRECONDITION, "not today: 100 %, \u00e9"))
        same(dict(error.trailing_metadata()).get("x-why"), "because")
    else:
        raise SystemExit("the call did not fail")


def check_streams(channel):
    pieces = list(channel.unary_stream("/test.Bytes/Count")(b"1000", timeout=PATIENCE_S))
    same(pieces, [str(number).encode() * 1000 for number in range(1000)])
    sent = (b"x" * 10_000 for _ in range(500))
    same(channel.stream_unary("/test.Bytes/Total")(sent, timeout=PATIENCE_S), b"5000000")


def check_talk(channel):
    """Each word is sent after the answer to the one before has come, so nothing may be held back."""
    words = queue.Queue()
    answers = channel.stream_stream("/test.Bytes/Talk")(iter(words.get, None), timeout=PATIENCE_S)
    for word in (b"one", b"two", b"three"):
        words.put(word)
        same(next(answers), b"heard " + word)
    words.put(None)
    same(list(answers), [])


def check_many_at_once(channel):
    calls = [channel.unary_unary("/test.Bytes/Unary").future(bytes([i]), timeout=PATIENCE_S) for i in range(200)]
    same([call.result() for call in calls], [bytes([i]) for i in range(200)])


def check_deadline(channel):
    try:
        next(channel.unary_stream("/test.Bytes/Silent")(b"", timeout=0.3))
    except grpc.RpcError as error:
        same(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
    else:
        raise SystemExit("the call was answered")


def check_cancel(channel):
    """It has no deadline, so the server learns of it only if it is told."""
    call = channel.unary_stream("/test.Bytes/Silent")(b"")
    same(dict(call.initial_metadata()).get("x-head"), "first")
    call.cancel()
    same(call.code(), grpc.StatusCode.CANCELLED)


def main(target, authorities=None):
    if authorities:
        credentials = grpc.ssl_channel_credentials(open(authorities, "rb").read())
        channel = grpc.secure_channel(target, credentials)
    else:
        channel = grpc.insecure_channel(target)
    with channel:
        for check in (check_unary, check_failure, check_streams, check_talk, check_many_at_once, check_deadline, check_cancel):
            check(channel)
            print(check.__name__, flush=True)


main(*sys.argv[1:])
