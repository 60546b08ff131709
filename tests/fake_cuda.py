"""A GPU that is not there: tensors that say they are on ``cuda``, with their values on the CPU.

Before every operation the devices of its tensors are compared, by the rule that torch's ``FakeTensorMode``
has for this (``FakeTensor._find_common_device``); then it is done on the CPU, and the results say that they
are where CUDA would have put them. Values are real, so that whatever looks at them (``.item()``, a mask as an
index, a loop over what is left) goes the way it would go on a GPU.

``FakeTensorMode`` alone does not reach far: it stops where a value is looked at, and a torch without CUDA has
no autograd for ``cuda``. So to C++ these tensors are on ``meta``; only Python and the rules see ``cuda``.

Not seen here: kernels of CUDA (cuDNN's GRU: the plain one takes its place), their rounding, speed and memory,
the operations that refuse a CPU scalar which most allow, and more than one GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")


class OnCuda(Tensor):
    """A tensor that says it is on the GPU."""

    value: Tensor
    device = CUDA
    is_cuda = True
    is_cpu = False
    is_meta = False

    @staticmethod
    def __new__(cls, value: Tensor) -> OnCuda:
        made: OnCuda = torch.Tensor._make_wrapper_subclass(
            cls,
            value.shape,
            value.stride(),
            value.storage_offset(),
            dtype=value.dtype,
            device=torch.device("meta"),
        )
        made.value = value
        return made

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        here = device is None or device.type == "cuda"
        return self if here and dtype in (None, self.dtype) else super().to(*args, **kwargs)

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def __repr__(self) -> str:  # type: ignore[override]  # torch's has an argument that nobody gives
        return f"OnCuda({self.value!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch's own is a plain function
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{func} of a tensor on the GPU, outside of fake_cuda()")


class WrongDevice(Exception):
    """Two devices in one operation."""


def _index(tensor: Tensor, indices: list[Tensor | None], *values: Any) -> list[torch.device]:
    """Indices may be on the CPU too; what is put in may be a scalar."""
    if any(index is not None and index.device not in (CPU, tensor.device) for index in indices):
        raise WrongDevice(f"indices on the GPU into a tensor on {tensor.device}")
    if values and values[0].device != tensor.device and values[0].ndim:
        raise WrongDevice(f"values on {values[0].device} into a tensor on {tensor.device}")
    return [tensor.device]


def _pack(sequence: Tensor, lengths: Tensor, *_: Any) -> list[torch.device]:
    """The lengths are wanted on the CPU, and the sizes of the steps are left there."""
    if lengths.device != CPU:
        raise WrongDevice("the lengths of a packed sequence are not on the CPU")
    return [sequence.device, CPU]


def _where_it_was(tensor: Tensor, *_: Any) -> list[torch.device]:
    return [tensor.device]


aten = torch.ops.aten
OF_ITS_OWN: dict[Any, Callable[..., list[torch.device]]] = {
    aten.index.Tensor: _index,
    aten.index_put.default: _index,
    aten.index_put_.default: _index,
    aten._index_put_impl_.default: _index,
    aten._pack_padded_sequence.default: _pack,
    aten._pack_padded_sequence_backward.default: _where_it_was,
    aten.copy_.default: _where_it_was,
}
"""Operations that may mix devices in a way of their own."""


class _Placed(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Does every operation on the CPU, if its devices agree, and says where the results are."""

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.fake = fake

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        arguments = tree_map(_named, (args, kwargs or {}))
        with unset_fake_temporarily():
            devices = self._devices(func, *arguments)
            given = {id(t.value): t for t in tree_leaves(arguments) if isinstance(t, OnCuda)}
            args, kwargs = tree_map(_on_cpu, arguments)
            results, shape = tree_flatten(func(*args, **kwargs))
            if torch.Tag.inplace_view in func.tags and given:
                with no_dispatch():  # the outside takes the new shape as well
                    func(*arguments[0], **arguments[1])
        devices = devices * len(results) if len(devices) == 1 else devices
        # What was changed in place is the tensor that was given.
        placed = [
            x if not isinstance(x, Tensor) or device == CPU else given[id(x)] if id(x) in given else OnCuda(x)
            for x, device in zip(results, devices, strict=True)
        ]
        return tree_unflatten(placed, shape)

    def _devices(self, func: Any, args: Any, kwargs: Any) -> list[torch.device]:
        """Return the devices of the results, one each or one for all; an error where torch refuses."""
        if func in OF_ITS_OWN:
            return OF_ITS_OWN[func](*args)
        if (asked := kwargs.get("device")) is None:
            leaves = [self._fake(x) for x in tree_leaves((args, kwargs))]
            tensors = [x for x in leaves if isinstance(x, FakeTensor)]
            asked = FakeTensor._find_common_device(func, leaves)[0] if tensors else CPU
            for argument, given in zip(func._schema.arguments, args, strict=False):
                written = argument.alias_info is not None and argument.alias_info.is_write
                if written and any(x.device != asked for x in tree_leaves(given) if isinstance(x, Tensor)):
                    raise WrongDevice(f"{func} writes into a tensor that is not on {asked}")
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != asked.type:
            raise WrongDevice(f"{func} on {asked} with a generator on {generator.device}")
        return [asked]

    def _fake(self, x: Any) -> Any:
        return self._one_like(x.device, x.ndim == 0) if isinstance(x, Tensor) else x

    @cache  # noqa: B019 (the rule asks for no more than these two things, and the mode does not live long)
    def _one_like(self, device: torch.device, scalar: bool) -> FakeTensor:
        return FakeTensor(self.fake, torch.empty(() if scalar else 1, device="meta"), device)


def _named(x: Any) -> Any:
    """``meta`` is what C++ calls the GPU."""
    return CUDA if isinstance(x, torch.device) and x.type in ("meta", "cuda") else x


def _on_cpu(x: Any) -> Any:
    if isinstance(x, OnCuda):
        return x.value
    return CPU if isinstance(x, torch.device) else x


@contextmanager
def fake_cuda() -> Iterator[torch.device]:
    """While this lasts there is a GPU: its device."""
    # The outer mode keeps torch from looking for CUDA as soon as it is named.
    with patch.object(nn.Module, "_apply", _moved), FakeTensorMode() as fake, _Placed(fake):
        yield CUDA


_apply: Any = nn.Module._apply


def _moved(module: nn.Module, *args: Any) -> Any:
    """A module on another device keeps its parameters, of which an optimiser may have hold already."""
    moves = any(not isinstance(parameter, OnCuda) for parameter in module.parameters(recurse=False))
    outer = torch.__future__.get_swap_module_params_on_conversion()  # of the module that this one is part of
    torch.__future__.set_swap_module_params_on_conversion(moves)
    try:
        return _apply(module, *args)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(outer)
