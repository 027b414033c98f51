"""A gRPC server of bytes: what it is sent it sends back. Says its port, and when a call is cancelled.

python3 grpc_server.py [CERTIFICATE KEY]
"""

import sys
import threading
from concurrent import futures

import grpc

CALLS_MAX = 32


def say(*words):
    print(*words, flush=True)


def unary(request, context):
    context.send_initial_metadata((("x-head", "first"),))
    context.set_trailing_metadata((("x-sum", str(sum(request))), ("x-blob-bin", b"\x00\xff")))
    return request[::-1]


def fail(request, context):
    context.set_trailing_metadata((("x-why", "because"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today: 100 %, \u00e9")


def count(request, context):
    for number in range(int(request)):
        yield str(number).encode() * 1000


def total(requests, context):
    return str(sum(len(request) for request in requests)).encode()


def talk(requests, context):
    for request in requests:
        yield b"heard " + request


def silent(request, context):
    gone = threading.Event()
    context.add_callback(gone.set)
    context.send_initial_metadata((("x-head", "first"),))
    gone.wait()
    say("cancelled")
    yield b"never"


def main(files):
    kinds = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Silent": grpc.unary_stream_rpc_method_handler(silent),
        "Total": grpc.stream_unary_rpc_method_handler(total),
        "Talk": grpc.stream_stream_rpc_method_handler(talk),
    }
    server = grpc.server(futures.ThreadPoolExecutor(CALLS_MAX))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Bytes", kinds),))
    if files:
        certificate, key = (open(name, "rb").read() for name in files)
        credentials = grpc.ssl_server_credentials(((key, certificate),))
        port = server.add_secure_port("127.0.0.1:0", credentials)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    say("port", port)
    server.wait_for_termination()


main(sys.argv[1:])
