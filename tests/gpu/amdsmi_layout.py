#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""amdsmi_layout.py AMDSMI_WRAPPER: what the binding says of amdsmi.h, for tests/gpu/amdsmi_header.c.

The binding is made from the header. It is run without the library. Of each struct T are printed SIZE_T, and of
each member M, also those of structs inside, PLACE_T_M and WIDTH_T_M, or BIT_T_M and BITS_T_M.
"""
import ctypes
import sys

BASIC = {"c_void_p": "void *", "c_char": "char", "c_short": "int16_t", "c_ushort": "uint16_t", "c_int": "int32_t",
         "c_uint": "uint32_t", "c_long": "int64_t", "c_ulong": "uint64_t", "c_float": "float", "c_ubyte": "uint8_t",
         "c_byte": "int8_t", "c_bool": "_Bool", "c_double": "double"}


class Function:
    restype = None
    argtypes = None


class Library:
    """Has any function."""

    def __init__(self, *_):
        self.functions = {}

    def __getattr__(self, name):
        return self.functions.setdefault(name, Function())


def run(path):
    names = {"__file__": path, "__name__": "wrapper"}
    real, ctypes.CDLL = ctypes.CDLL, Library
    try:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), names)
    finally:
        ctypes.CDLL = real
    return names


def is_struct(kind):
    return isinstance(kind, type) and issubclass(kind, (ctypes.Structure, ctypes.Union))


def members(kind, base=0):
    """(name, place, width, bit, bits); bits is 0 of a member that is no bit field."""
    for field in getattr(kind, "_fields_", []):
        at = getattr(kind, field[0])
        if is_struct(field[1]):
            yield from members(field[1], base + at.offset)
        elif len(field) == 3:
            yield field[0], base + at.offset, 0, at.size & 0xffff, at.size >> 16
        else:
            yield field[0], base + at.offset, ctypes.sizeof(field[1]), 0, 0


def c_type(kind):
    if hasattr(kind, "contents") or hasattr(kind, "_length_"):
        return c_type(kind._type_) + " *"
    name = kind.__name__.removeprefix("struct_").removeprefix("union_")
    return BASIC.get(name, f"struct {name}")


def main():
    names = run(sys.argv[1])
    print("#include <stdint.h>")
    for name, value in sorted(names.items()):
        if name.startswith("AMDSMI_") and isinstance(value, int):
            print(f"#define {name} {value}ull")
    for name, kind in sorted(names.items()):
        if not is_struct(kind) or not name.startswith(("struct_", "union_")):
            continue
        name = name.removeprefix("struct_").removeprefix("union_")
        seen = set()
        print(f"struct {name};\n#define SIZE_{name} {ctypes.sizeof(kind)}")
        for member, place, width, bit, bits in members(kind):
            if member in seen or member.startswith("PADDING"):
                continue
            seen.add(member)
            if bits:
                print(f"#define BIT_{name}_{member} {8 * place + bit}\n#define BITS_{name}_{member} {bits}")
            else:
                print(f"#define PLACE_{name}_{member} {place}\n#define WIDTH_{name}_{member} {width}")
    for name, value in sorted(names.items()):
        if isinstance(value, Function) and name.startswith("amdsmi_") and value.argtypes is not None:
            result = "void" if value.restype is None else c_type(value.restype)
            print(f"{result} {name}({', '.join(map(c_type, value.argtypes)) or 'void'});")


main()
