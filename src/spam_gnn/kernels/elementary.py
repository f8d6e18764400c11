"""exp and log for compiled loops, written so that the compiler can put them in vector registers.

A call to the C library ends vectorisation, and propagating beliefs is little else than these two functions. Single numbers use
polynomials (Cephes, relative error about 1e-7); double ones, which only tests use, call the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from spam_gnn.kernels.compiled import elementwise

_SINGLE = np.float32
_TO_TWOS, _HALF, _ONE = _SINGLE(1.44269504088896341), _SINGLE(0.5), _SINGLE(1.0)
_LN2_HIGH, _LN2_LOW = _SINGLE(0.693359375), _SINGLE(-2.12194440e-4)  # whose sum is log 2: products with the first are exact
_LEAST, _MOST, _ROOT_HALF = _SINGLE(-87.0), _SINGLE(88.0), _SINGLE(0.707106781186547524)
_E0, _E1, _E2 = _SINGLE(1.9875691500e-4), _SINGLE(1.3981999507e-3), _SINGLE(8.3334519073e-3)
_E3, _E4, _E5 = _SINGLE(4.1665795894e-2), _SINGLE(1.6666665459e-1), _SINGLE(5.0000001201e-1)
_L0, _L1, _L2 = _SINGLE(7.0376836292e-2), _SINGLE(-1.1514610310e-1), _SINGLE(1.1676998740e-1)
_L3, _L4, _L5 = _SINGLE(-1.2420140846e-1), _SINGLE(1.4249322787e-1), _SINGLE(-1.6668057665e-1)
_L6, _L7, _L8 = _SINGLE(2.0000714765e-1), _SINGLE(-2.4999993993e-1), _SINGLE(3.3333331174e-1)
_BITS, _BIAS, _BELOW_ONE = np.int32(23), np.int32(127), np.int32(126)
_FRACTION, _HALF_BITS = np.int32(0x007FFFFF), np.int32(0x3F000000)


def _as_bits(typing: Any, number: Any) -> Any:  # noqa: ARG001 - numba's calling convention
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), emit


def _as_number(typing: Any, bits: Any) -> Any:  # noqa: ARG001
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), emit


as_bits: Any = intrinsic(_as_bits)
as_number: Any = intrinsic(_as_number)


@elementwise
def single_exp(x: Any) -> Any:
    """e^x of a single number; beyond what such numbers hold, the smallest and the largest."""
    x = x if x > _LEAST else _LEAST
    x = x if x < _MOST else _MOST
    twos = np.floor(x * _TO_TWOS + _HALF)
    r = x - twos * _LN2_HIGH - twos * _LN2_LOW
    y = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
    return (y * r * r + r + _ONE) * as_number(np.int32((np.int32(twos) + _BIAS) << _BITS))


@elementwise
def single_log(x: Any) -> Any:
    """log x of a normal positive single number."""
    bits = as_bits(x)
    twos = _SINGLE(np.int32((bits >> _BITS) - _BELOW_ONE))
    part = as_number(np.int32((bits & _FRACTION) | _HALF_BITS))  # in [1/2, 1)
    small = part < _ROOT_HALF
    twos = twos - (_ONE if small else _ONE - _ONE)
    m = part + (part if small else part - part) - _ONE
    z = m * m
    y = ((((_L0 * m + _L1) * m + _L2) * m + _L3) * m + _L4) * m + _L5
    y = ((y * m + _L6) * m + _L7) * m + _L8
    return m + (y * m * z + twos * _LN2_LOW - _HALF * z) + twos * _LN2_HIGH


def exp(x: Any) -> Any:
    """e^x, for compiled code."""
    return np.exp(x)


def log(x: Any) -> Any:
    """log x of a normal positive number, for compiled code."""
    return np.log(x)


def _single_exp(x: Any) -> Any:
    return single_exp(x)


def _single_log(x: Any) -> Any:
    return single_log(x)


def _library_exp(x: Any) -> Any:
    return np.exp(x)


def _library_log(x: Any) -> Any:
    return np.log(x)


@overload(exp)
def _exp(x: Any) -> Any:
    return _single_exp if x == types.float32 else _library_exp


@overload(log)
def _log(x: Any) -> Any:
    return _single_log if x == types.float32 else _library_log
