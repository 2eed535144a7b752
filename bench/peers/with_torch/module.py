# SPDX-FileCopyrightText: 2026 The Fulcrum authors
# SPDX-License-Identifier: Apache-2.0
"""A backend module in this process, by the C contract of include/fulcrum/abi.h. Knows nothing of PyTorch.

    module = Module("build/lib/fulcrum/libfulcrum_cuda.so")
    call = module.call("relu", "default", "f32", [x, out], [n], [])
    call(stream)
"""
import ctypes

ABI_VERSION = 2
SLOTS = 8
ENTRY = "fulcrum_backend_v1"
FIRST_KERNEL_BYTES = 128  # sizeof(fulcrum_kernel) of version 2, for modules that do not say theirs

_text = ctypes.c_char_p
_pointer = ctypes.c_void_p


class Status(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("message", _text)]


class Scalar(ctypes.Union):
    _fields_ = [("f", ctypes.c_double), ("i", ctypes.c_int64)]


class Args(ctypes.Structure):
    _fields_ = [("ptr", _pointer * SLOTS), ("dim", ctypes.c_int64 * SLOTS), ("scalar", Scalar * SLOTS),
                ("prepared", _pointer), ("plan", _pointer)]


class Kernel(ctypes.Structure):
    pass


_supports = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Args))
_plan = ctypes.CFUNCTYPE(Status, ctypes.POINTER(Kernel), ctypes.POINTER(Args), ctypes.POINTER(_pointer))
_drop = ctypes.CFUNCTYPE(None, _pointer)
_run = ctypes.CFUNCTYPE(Status, ctypes.POINTER(Args), _pointer, ctypes.c_int64)
Kernel._fields_ = [("op", _text), ("variant", _text), ("precision", _text), ("dtype", _text),
                   ("threads", ctypes.c_int32), ("level", ctypes.c_int32), ("flop_factor", ctypes.c_double),
                   ("byte_factor", ctypes.c_double), ("isa", _pointer), ("detail", _pointer), ("supports", _supports),
                   ("plan", _plan), ("drop", _drop), ("run", _run)]


_log = ctypes.CFUNCTYPE(None, ctypes.c_int32, _text)


class Host(ctypes.Structure):
    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_bytes", ctypes.c_uint32), ("log", _log)]


class Backend(ctypes.Structure):
    """Up to the stride of the kernels; what comes behind it is not needed here."""
    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_bytes", ctypes.c_uint32), ("name", _text), ("kind", _text),
                ("available", ctypes.CFUNCTYPE(ctypes.c_int)), ("why_not", ctypes.CFUNCTYPE(_text)),
                ("describe", ctypes.CFUNCTYPE(_text)),
                ("kernels", ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(ctypes.c_int64))),
                ("memory_and_streams", _pointer * 6), ("marks", _pointer * 4), ("kernel_bytes", ctypes.c_uint32)]


class Unavailable(Exception):
    """Why a module, or a kernel of it, cannot serve."""


def _said(status):
    return (status.message or b"no message").decode(errors="replace")


class Call:
    """One kernel on one set of operands, planned once."""

    def __init__(self, kernel, args, keep):
        self._kernel, self._args, self._keep = kernel, args, keep
        if kernel.plan:
            made = _pointer()
            status = kernel.plan(ctypes.byref(kernel), ctypes.byref(args), ctypes.byref(made))
            if status.code != 0:
                raise Unavailable(_said(status))
            args.plan = made

    def __call__(self, stream=None):
        status = self._kernel.run(ctypes.byref(self._args), stream, 1)
        if status.code != 0:
            raise RuntimeError(_said(status))

    def close(self):
        if self._kernel.drop and self._args.plan:
            self._kernel.drop(self._args.plan)
        self._args.plan = None


class Module:
    def __init__(self, path):
        try:
            self._library = ctypes.CDLL(path)
            entry = getattr(self._library, ENTRY)
        except (OSError, AttributeError) as error:
            raise Unavailable(str(error)) from error
        entry.restype, entry.argtypes = ctypes.POINTER(Backend), [ctypes.POINTER(Host)]
        self._host = Host(ABI_VERSION, ctypes.sizeof(Host), _log(lambda level, message: None))
        found = entry(ctypes.byref(self._host))
        if not found:
            raise Unavailable("the module wants a newer host")
        self._backend = found.contents
        if self._backend.abi_version != ABI_VERSION:
            raise Unavailable(f"the module speaks version {self._backend.abi_version} of the contract, not {ABI_VERSION}")
        if self._backend.available and not self._backend.available():
            reason = self._backend.why_not() if self._backend.why_not else b"it is not available"
            raise Unavailable(reason.decode(errors="replace"))

    @property
    def name(self):
        return self._backend.name.decode()

    def kernels(self):
        count = ctypes.c_int64()
        first = self._backend.kernels(ctypes.byref(count))
        says = self._backend.struct_bytes >= Backend.kernel_bytes.offset + Backend.kernel_bytes.size
        stride = (self._backend.kernel_bytes if says else 0) or FIRST_KERNEL_BYTES
        return [Kernel.from_address(first + i * stride) for i in range(count.value)]

    def call(self, op, variant, dtype, pointers, dims, scalars):
        """Scalars are floats for parameters and ints for integers and the codes of choices; pointers are addresses or None,
        in the order of the op's slots."""
        args = Args()
        for slot, address in enumerate(pointers):
            args.ptr[slot] = address
        for slot, size in enumerate(dims):
            args.dim[slot] = size
        for slot, value in enumerate(scalars):
            setattr(args.scalar[slot], "f" if isinstance(value, float) else "i", value)
        for kernel in self.kernels():
            if (kernel.op, kernel.variant, kernel.dtype or b"f32") != (op.encode(), variant.encode(), dtype.encode()):
                continue
            if kernel.supports and not kernel.supports(ctypes.byref(args)):
                raise Unavailable(f"{op}/{variant} does not take this shape")
            return Call(kernel, args, self)
        raise Unavailable(f"{self.name} has no {op}/{variant} of {dtype}")
