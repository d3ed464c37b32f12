"""A small SQLite database for gates with an origin, and its configuration.

Products have an id, a name, and a cost: so many milliseconds does a query for them take.
"""

import os
import sqlite3

from gear import herd_counters

QUERY = "SELECT name FROM product WHERE id = :id AND herd_cost(cost, 0) = 0"


class Catalogue:
    def __init__(self, folder, rows=()):
        """`rows`: (id, name, cost in milliseconds)."""
        self.path = os.path.join(folder, "catalogue.db")
        self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("CREATE TABLE product (id TEXT PRIMARY KEY, name, cost REAL NOT NULL DEFAULT 0)")
        self.put(*rows)

    def put(self, *rows):
        self.db.executemany("INSERT OR REPLACE INTO product VALUES (?, ?, ?)", rows)

    def remove(self, row):
        self.db.execute("DELETE FROM product WHERE id = ?", (row,))

    def hide(self, hidden):
        """Takes the table away, or brings it back: then each query fails, or works again."""
        names = ("product", "hidden") if hidden else ("hidden", "product")
        self.db.execute("ALTER TABLE {} RENAME TO {}".format(*names))

    def config(self, gate="", origin="", pattern="product:{id}", query=QUERY, more=""):
        return (f'{more} origin "catalogue" {{ type = sqlite  path = "{self.path}"  {origin} }}\n'
                f'gate "{pattern}" {{ origin = catalogue  query = "{query}"  {gate} }}\n')


def origin_counters(where, number=1):
    """What INFO tells of an origin: origin_counters(daemon)["queries"]."""
    line = herd_counters(where)[f"origin{number}"]
    pairs = (part.partition("=") for part in line.split(","))
    return {name: int(value) if value.isdigit() else value for name, _, value in pairs}
