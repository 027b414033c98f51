"""A WebSocket client that talks with the server beside it, through whatever stands between.

python3 websocket_client.py URL
"""

import sys

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

PATIENCE_S = 30
MESSAGE_BYTES_MAX = 4 * 1024 * 1024


def main(url):
    try:
        connection = connect(url, open_timeout=PATIENCE_S, max_size=MESSAGE_BYTES_MAX)
    except InvalidStatus as error:
        print("status", error.response.status_code, error.response.headers.get("retry-after"))
        return
    with connection:
        for message in ("hello", "\u00e9" * 1000, b"\x00\xff" * 1_000_000, ""):
            connection.send(message)
            if connection.recv(PATIENCE_S) != message:
                raise SystemExit("another message came back")
        if not connection.ping().wait(PATIENCE_S):
            raise SystemExit("no pong")
        connection.close(4000, "enough")
    print("closed", connection.close_code, connection.close_reason)


main(*sys.argv[1:])
