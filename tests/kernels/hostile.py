"""Arrow streams with malformed C structures, each read in its own process. A script that prints the outcomes."""

import ctypes
import os
import signal
import struct
import sys

import numpy as np

import discreet as dp

ROWS = 3
MINUS = -1
HUGE = 2**63 - 1

Pointer = ctypes.c_void_p
Release = ctypes.CFUNCTYPE(None, Pointer)
Get = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer)
Text = ctypes.CFUNCTYPE(Pointer, Pointer)


class Schema(ctypes.Structure):
    _fields_ = [
        ("format", Pointer),
        ("name", Pointer),
        ("metadata", Pointer),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", Pointer),
        ("dictionary", Pointer),
        ("release", Pointer),
        ("private_data", Pointer),
    ]


class Array(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", Pointer),
        ("children", Pointer),
        ("dictionary", Pointer),
        ("release", Pointer),
        ("private_data", Pointer),
    ]


class Stream(ctypes.Structure):
    _fields_ = [
        ("get_schema", Pointer),
        ("get_next", Pointer),
        ("get_last_error", Pointer),
        ("release", Pointer),
        ("private_data", Pointer),
    ]


KEPT = []


def kept(value):
    KEPT.append(value)
    return value


def address(value):
    return ctypes.cast(kept(value), Pointer).value


def text(raw):
    return None if raw is None else address(ctypes.c_char_p(raw))


def buffer(raw):
    return None if raw is None else address(ctypes.create_string_buffer(raw, len(raw) + 8))


def pointers(values):
    return address((Pointer * max(1, len(values)))(*values))


def released(kind):
    return Release(lambda at: setattr(kind.from_address(at), "release", None))


RELEASE = {kind: kept(released(kind)) for kind in (Schema, Array, Stream)}


def schema(form, name=b"", children=(), dictionary=None):
    return Schema(
        format=text(form),
        name=text(name),
        flags=2,
        n_children=len(children),
        children=pointers([ctypes.addressof(kept(child)) for child in children]),
        dictionary=None if dictionary is None else ctypes.addressof(kept(dictionary)),
        release=ctypes.cast(RELEASE[Schema], Pointer),
    )


def array(buffers, length=ROWS, null_count=0, children=(), dictionary=None):
    return Array(
        length=length,
        null_count=null_count,
        n_buffers=len(buffers),
        n_children=len(children),
        buffers=pointers([buffer(raw) for raw in buffers]),
        children=pointers([ctypes.addressof(kept(child)) for child in children]),
        dictionary=None if dictionary is None else ctypes.addressof(kept(dictionary)),
        release=ctypes.cast(RELEASE[Array], Pointer),
    )


LABEL = b"a label of more than twelve bytes"
VIEWS = b"".join(struct.pack("<i4sii", size, LABEL[:4], 0, 0) for size in (33, 33, 32))


def string():
    return schema(b"u", b"i"), array([None, struct.pack("<4i", 0, 1, 2, 3), b"aab"])


COLUMNS = {
    "int": lambda: (schema(b"l", b"i"), array([None, struct.pack("<3q", 7, 7, 8)])),
    "string": string,
    "large": lambda: (schema(b"U", b"i"), array([None, struct.pack("<4q", 0, 1, 2, 3), b"aab"])),
    "view": lambda: (schema(b"vu", b"i"), array([None, VIEWS, LABEL, struct.pack("<q", len(LABEL))])),
    "fixed": lambda: (schema(b"w:2", b"i"), array([None, b"aaaabb"])),
    "dictionary": lambda: (
        schema(b"c", b"i", dictionary=string()[0]),
        array([None, b"\0\0\2"], dictionary=string()[1]),
    ),
}


class Producer:
    """A stream of one batch, with a column `u` of integers and a column `i` of the given kind."""

    def __init__(self, kind):
        self.user = schema(b"l", b"u"), array([None, struct.pack("<3q", 1, 2, 3)])
        self.item = COLUMNS[kind]()
        self.schema = schema(b"+s", children=[self.user[0], self.item[0]])
        self.array = array([None], children=[self.user[1], self.item[1]])
        self.given = False
        self.stream = Stream(
            get_schema=address(Get(self.put_schema)),
            get_next=address(Get(self.put_next)),
            get_last_error=address(Text(lambda _: None)),
            release=ctypes.cast(RELEASE[Stream], Pointer),
        )

    def put_schema(self, _, into):
        ctypes.memmove(into, ctypes.addressof(self.schema), ctypes.sizeof(Schema))
        return 0

    def put_next(self, _, into):
        empty = Array()
        ctypes.memmove(into, ctypes.addressof(empty if self.given else self.array), ctypes.sizeof(Array))
        self.given = True
        return 0

    def __arrow_c_stream__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [Pointer, ctypes.c_char_p, Pointer]
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", None)


def bits(raw):
    """Set the column's validity bitmap; set bits mark cells that are not NULL."""
    return lambda p: set_buffer(p.item[1], 0, raw)


def set_buffer(owner, number, raw):
    (Pointer * (number + 1)).from_address(owner.buffers)[number] = buffer(raw)


def offsets(*values, wide=False):
    return lambda p: set_buffer(p.item[1], 1, struct.pack(f"<{len(values)}{'q' if wide else 'i'}", *values))


def field(part, number=None, **values):
    """Set fields of one of the producer's structures."""

    def defect(producer):
        owner = getattr(producer, part)
        for name, value in values.items():
            setattr(owner if number is None else owner[number], name, value() if callable(value) else value)

    return defect


def inner(**values):
    """Set fields of the array of a dictionary's values."""

    def defect(producer):
        for name, value in values.items():
            setattr(Array.from_address(producer.item[1].dictionary), name, value)

    return defect


def first_child(value, part):
    def defect(producer):
        (Pointer * 1).from_address(getattr(producer, part).children)[0] = value

    return defect


ANY = list(COLUMNS)
DEFECTS = {
    "no defect": (ANY, lambda _: None),
    # The schema.
    "no format of the table": (["int"], field("schema", format=None)),
    "a format that is not a table": (["int"], field("schema", format=lambda: text(b"l"))),
    "no format of a column": (ANY, field("item", 0, format=None)),
    "a format that is not UTF-8": (["int"], field("item", 0, format=lambda: text(b"\xff"))),
    "a format that is empty": (["int"], field("item", 0, format=lambda: text(b""))),
    "a negative width": (["fixed"], field("item", 0, format=lambda: text(b"w:-2"))),
    "a width that is not a number": (["fixed"], field("item", 0, format=lambda: text(b"w:x"))),
    "a list without children": (["int"], field("item", 0, format=lambda: text(b"+l"))),
    "a union without children": (["int"], field("item", 0, format=lambda: text(b"+ud:0,1"))),
    "a negative number of children": (["int"], field("schema", n_children=MINUS)),
    "children at NULL": (["int"], field("schema", children=None)),
    "a child at NULL": (["int"], first_child(None, "schema")),
    "a name that is not UTF-8": (["int"], field("item", 0, name=lambda: text(b"\xff"))),
    "a dictionary that contains itself": (
        ["dictionary"],
        lambda p: setattr(Schema.from_address(p.item[0].dictionary), "dictionary", p.item[0].dictionary),
    ),
    "no name": (["int"], field("item", 0, name=None)),
    "a dictionary without a format": (
        ["dictionary"],
        lambda p: setattr(Schema.from_address(p.item[0].dictionary), "format", None),
    ),
    "a negative number of metadata entries": (
        ["int"],
        field("item", 0, metadata=lambda: buffer(struct.pack("<i", MINUS))),
    ),
    "a schema that is released": (["int"], field("schema", release=None)),
    # The table.
    "a negative length": (["int"], field("array", length=MINUS)),
    "a negative offset": (["int"], field("array", offset=MINUS)),
    "a huge offset": (["int"], field("array", offset=HUGE)),
    "a length above that of its columns": (["int", "string"], field("array", length=ROWS + 1)),
    "fewer columns": (["int"], field("array", n_children=1)),
    "a negative number of columns": (["int"], field("array", n_children=MINUS)),
    "columns at NULL": (["int"], field("array", children=None)),
    "a column at NULL": (["int"], first_child(None, "array")),
    "a negative number of buffers of the table": (["int"], field("array", n_buffers=MINUS)),
    "buffers of the table at NULL": (["int"], field("array", buffers=None)),
    "no get_schema": (["int"], field("stream", get_schema=None)),
    "no get_next": (["int"], field("stream", get_next=None)),
    # A column.
    "a column's negative length": (ANY, field("item", 1, length=MINUS)),
    "a column's huge length": (ANY, field("item", 1, length=HUGE)),
    "a column's negative offset": (ANY, field("item", 1, offset=MINUS)),
    "a column's huge offset": (ANY, field("item", 1, offset=HUGE)),
    "a column's huge offset times width": (ANY, field("item", 1, offset=2**60)),
    "a column that is released": (ANY, field("item", 1, release=None)),
    "no buffers": (ANY, field("item", 1, n_buffers=0)),
    "one buffer": (ANY, field("item", 1, n_buffers=1)),
    "a negative number of buffers": (ANY, field("item", 1, n_buffers=MINUS)),
    "buffers at NULL": (ANY, field("item", 1, buffers=None)),
    "no values": (ANY, lambda p: set_buffer(p.item[1], 1, None)),
    "no bytes": (["string", "large", "view"], lambda p: set_buffer(p.item[1], 2, None)),
    "no lengths of blocks": (["view"], lambda p: set_buffer(p.item[1], 3, None)),
    "negative lengths of blocks": (["view"], lambda p: set_buffer(p.item[1], 3, struct.pack("<q", MINUS))),
    "a view beyond the end of its block": (["view"], lambda p: set_buffer(p.item[1], 3, struct.pack("<q", 32))),
    "negative offsets": (["string"], offsets(MINUS, 1, 2, 3)),
    "a negative last offset": (["string"], offsets(0, 1, 2, MINUS)),
    "negative wide offsets": (["large"], offsets(0, 1, 2, MINUS, wide=True)),
    "huge negative wide offsets": (["large"], offsets(0, 1, 2, -(2**63), wide=True)),
    "offsets that decrease": (["string"], offsets(0, 3, 1, 2)),
    "no dictionary": (["dictionary"], field("item", 1, dictionary=None)),
    "a dictionary of a column without one": (
        ["int"],
        field("item", 1, dictionary=lambda: ctypes.addressof(kept(string()[1]))),
    ),
    "a dictionary's negative length": (["dictionary"], inner(length=MINUS)),
    "a dictionary's huge offset": (["dictionary"], inner(offset=HUGE)),
    "a dictionary without buffers": (["dictionary"], inner(n_buffers=0)),
    "a dictionary's null count above its length": (["dictionary"], inner(null_count=ROWS + 1)),
    "an index beyond the dictionary": (["dictionary"], inner(length=1)),
    # NULL.
    "a null count without a bitmap": (ANY, field("item", 1, null_count=1)),
    "a null count above the length": (ANY, field("item", 1, null_count=ROWS + 1)),
    "a null count below -1": (ANY, field("item", 1, null_count=-7)),
    "a null count of zero with one NULL": (ANY, bits(b"\x05")),
    "a table's null count without a bitmap": (["int"], field("array", null_count=1)),
}


def outcome(kind, defect):
    """Return an error's class, or the number of labels read from the histogram: two are requested."""
    producer = kept(Producer(kind))
    DEFECTS[defect][1](producer)
    try:
        histogram = dp.Histogram.from_table(producer, user="u", item="i")
        return f"counted {len(histogram._labels.take(np.arange(2)))}"
    except BaseException as error:
        return type(error).__name__


def main():
    signal.alarm(300)
    # Each process would import the same modules again.
    dp.Histogram.from_table(kept(Producer("int")), user="u", item="i")
    for defect, (kinds, _) in DEFECTS.items():
        for kind in kinds:
            print(f"{defect}; {kind}; ", end="", flush=True)
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                sys.stdout.write(outcome(kind, defect))
                sys.stdout.flush()
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(f" ended by {code}" if code else "", flush=True)


if __name__ == "__main__":
    main()
