"""A tiny RESP client on a raw socket: it sends exactly what a test says and tells exactly what came back, and when.

Replies become: bulk string -> bytes, simple string -> str, integer -> int, null -> None, array or set -> list,
map -> dict, double -> float, boolean -> bool, error -> Error (a value, never raised). Pushes are put aside in `pushes`.
Not thread-safe: one connection, one thread, but for `close`.
"""

import select
import socket
import time
from urllib.parse import urlparse


class Error:
    """An error reply. `word` is its first word, as clients branch on it."""

    def __init__(self, text):
        self.text = text
        self.word = text.split(" ", 1)[0]

    def __repr__(self):
        return f"Error({self.text!r})"

    def __eq__(self, other):
        return isinstance(other, Error) and other.text == self.text

    def __hash__(self):
        return hash(self.text)


class Closed(Exception):
    """The server closed the connection where a reply was expected."""


class Late(Exception):
    """No whole reply came in the time that was given."""


def encode(*arguments):
    """One command as an array of bulk strings. Numbers and text are converted as a person would type them."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        if isinstance(argument, str):
            argument = argument.encode()
        elif not isinstance(argument, (bytes, bytearray)):
            argument = str(argument).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(argument), argument))
    return b"".join(parts)


class _Short(Exception):
    """The buffer ends inside a frame."""


class Connection:
    """A connection to `address`: a (host, port) pair, a port number, or the path of a Unix socket."""

    def __init__(self, address, timeout=10.0, protocol=2, receive_buffer=None):
        self.timeout = timeout
        self.pushes = []
        self.buffer = bytearray()
        self.position = 0
        if isinstance(address, int):
            address = ("127.0.0.1", address)
        if isinstance(address, str) and "://" in address:
            parsed = urlparse(address)
            address = (parsed.hostname, parsed.port)
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        if family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if protocol != 2:
            self.greeting = self.ask("HELLO", protocol)

    # Sending

    def send(self, *arguments):
        """Sends one command and does not wait."""
        self.socket.sendall(encode(*arguments))
        return self

    def send_raw(self, data):
        """Sends these very bytes."""
        self.socket.sendall(data)
        return self

    def ask(self, *arguments, timeout=None):
        """Sends one command and returns its reply."""
        return self.send(*arguments).read(timeout)

    def pipeline(self, *commands, timeout=None):
        """Sends all commands in one write; returns their replies in order."""
        self.send_raw(b"".join(encode(*command) for command in commands))
        return [self.read(timeout) for _ in commands]

    # Receiving

    def read(self, timeout=None):
        """The next reply. Raises Late when it is not whole in time, Closed when the server hung up."""
        return self.read_timed(timeout)[0]

    def read_timed(self, timeout=None):
        """(reply, the monotonic second at which it was whole)."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            try:
                value, is_push = self._take_frame()
            except _Short:
                self._receive(end)
                continue
            if is_push:
                self.pushes.append(value)
                continue
            return value, time.monotonic()

    def silent_for(self, seconds):
        """True when no reply comes for that long: how a test says "this one is held". One that does come is kept."""
        if self.position < len(self.buffer):
            return False
        ready, _, _ = select.select([self.socket], [], [], seconds)
        return not ready

    def read_push(self, timeout=None):
        """The next push message; replies that arrive before it are an error of the test."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while not self.pushes:
            try:
                value, is_push = self._take_frame()
                if not is_push:
                    raise AssertionError(f"a reply came where a push was expected: {value!r}")
                self.pushes.append(value)
            except _Short:
                self._receive(end)
        return self.pushes.pop(0)

    def closed_within(self, seconds):
        """True when the server hangs up in that time; what it sent before is left to read."""
        end = time.monotonic() + seconds
        try:
            while True:
                self._receive(end)
        except Closed:
            return True
        except Late:
            return False

    # Ending

    def close(self):
        """Closes in the ordinary way."""
        self.socket.close()

    def reset(self):
        """Closes with a TCP reset, as a killed process with unread data does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Frames

    def _receive(self, end):
        left = end - time.monotonic()
        if left <= 0:
            raise Late(f"no whole reply in time; so far {bytes(self.buffer[self.position:self.position + 80])!r}")
        self.socket.settimeout(left)
        try:
            chunk = self.socket.recv(1 << 16)
        except (TimeoutError, socket.timeout):
            raise Late(f"no whole reply in time; so far {bytes(self.buffer[self.position:self.position + 80])!r}")
        except ConnectionResetError:
            raise Closed("connection reset")
        if not chunk:
            raise Closed("connection closed by the server")
        self.buffer += chunk

    def _take_frame(self):
        start = self.position
        try:
            is_push = self.buffer[start:start + 1] == b">"
            value = self._frame()
        except _Short:
            self.position = start
            raise
        if self.position > 1 << 16 or self.position == len(self.buffer):
            del self.buffer[:self.position]
            self.position = 0
        return value, is_push

    def _line(self):
        end = self.buffer.find(b"\r\n", self.position)
        if end < 0:
            raise _Short()
        line = bytes(self.buffer[self.position:end])
        self.position = end + 2
        return line

    def _blob(self, length):
        end = self.position + length
        if len(self.buffer) < end + 2:
            raise _Short()
        blob = bytes(self.buffer[self.position:end])
        assert self.buffer[end:end + 2] == b"\r\n", "a bulk string without CR LF at its end: the stream is out of step"
        self.position = end + 2
        return blob

    def _frame(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode(errors="backslashreplace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._blob(int(rest))
        if kind in b"*~>":
            return None if rest == b"-1" else [self._frame() for _ in range(int(rest))]
        if kind == b"%":
            return {_hashable(self._frame()): self._frame() for _ in range(int(rest))}
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"(":
            return int(rest)
        if kind == b"=":
            return self._blob(int(rest))[4:]
        if kind == b"!":
            return Error(self._blob(int(rest)).decode(errors="backslashreplace"))
        raise AssertionError(f"not RESP: {line[:80]!r}")


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value
