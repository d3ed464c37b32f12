"""A TCP proxy on a free loopback port that misbehaves on demand, between a client and a server.

Modes can be changed at any time and hold for what passes from then on, in both directions:
  delay_seconds   every chunk is passed on that much later
  silent          nothing is passed on any more, the connections stay open
  refuse          new connections are closed at once
  cut_after_bytes after so many bytes towards the client its connection is reset, in the middle of a frame if need be
  drop_replies    what the server says is thrown away
"""

import socket
import threading
import time


class Proxy:
    def __init__(self, target):
        self.target = ("127.0.0.1", target) if isinstance(target, int) else target
        self.delay_seconds = 0.0
        self.silent = False
        self.refuse = False
        self.drop_replies = False
        self.cut_after_bytes = None
        self.connections = []
        self.accepted = 0
        self.stopping = False
        self.lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1024)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def stop(self):
        """Ends the proxy and every connection through it."""
        self.stopping = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut_all()
        self.thread.join(5)

    def cut_all(self):
        """Resets every connection that is open now."""
        with self.lock:
            pairs, self.connections = self.connections, []
        for pair in pairs:
            for end in pair:
                _reset(end)

    def _accept(self):
        while not self.stopping:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            if self.refuse:
                client.close()
                continue
            try:
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections.append((client, server))
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, sink, to_client):
        sent = 0
        try:
            while chunk := source.recv(1 << 16):
                if self.delay_seconds:
                    time.sleep(self.delay_seconds)
                if self.silent or (to_client and self.drop_replies):
                    continue
                if to_client and self.cut_after_bytes is not None and sent + len(chunk) > self.cut_after_bytes:
                    sink.sendall(chunk[:max(0, self.cut_after_bytes - sent)])
                    _reset(sink)
                    _reset(source)
                    return
                sink.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        if not self.silent:
            for end in (sink, source):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def _reset(end):
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        end.shutdown(socket.SHUT_RD)
    except OSError:
        pass
    try:
        end.close()
    except OSError:
        pass
