"""A WebSocket server that sends back what it gets. Says its port.

python3 websocket_server.py [CERTIFICATE KEY]
"""

import ssl
import sys

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

MESSAGE_BYTES_MAX = 4 * 1024 * 1024


def echo(connection):
    try:
        for message in connection:
            connection.send(message)
    except ConnectionClosed:
        pass  # With a code of the client's own, which is as good as any.


def main(files):
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
    with serve(echo, "127.0.0.1", 0, ssl=context, max_size=MESSAGE_BYTES_MAX) as server:
        print("port", server.socket.getsockname()[1], flush=True)
        server.serve_forever()


main(sys.argv[1:])
