"""Stack: torch modules of one form that learn together, as one program.

The networks of other libraries are small, and torch spends most of a step on calling operators
one by one, forward and backward. Here `torch.func.vmap` makes one function of all members, and
one step of Adam on the sum of their losses is traced once and then run by torch's interpreter.
The arithmetic is that of the modules: `tests/test_tabular_stacks.py` trains both.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from studies.tabular.datasets import Task

_BETAS, _EPS = (0.9, 0.999), 1e-8  # as torch has them

Program = Callable[..., Any]
Tensors = tuple[Tensor, ...]
_FEW = 64  # calls before something is traced
_calls: Counter[Hashable] = Counter()
_programs: dict[Hashable, Program] = {}  # of this process: splits of a data set share them


@dataclass(frozen=True, eq=False)
class Form:
    """What members have in common: a module whose own numbers are not used, and the loss.

    Two modules of the same `key` must differ in parameters and buffers only: what was traced for
    one is used for the other.
    """

    module: nn.Module
    task: Task
    key: Hashable

    def scores(self, parameters: Mapping[str, Tensor], buffers: Tensors, x: Tensor) -> Tensor:
        """Of all members, (n_members, n_rows); rows are the same for all, or of each its own."""
        names = [name for name, _ in self.module.named_buffers()]

        def one(own: Mapping[str, Tensor], fixed: Tensors, x: Tensor) -> Tensor:
            state = dict(own) | dict(zip(names, fixed, strict=True))
            scores: Tensor = functional_call(self.module, state, (x,))
            return scores[:, 0]

        shared = None if x.dim() == 2 else 0
        scores: Tensor = vmap(one, in_dims=(0, 0, shared))(parameters, buffers, x)
        return scores

    def loss(self, parameters: Mapping[str, Tensor], buffers: Tensors, *rows: Tensor) -> Tensor:
        """The sum of the losses of all members; `rows` are y, weights and x."""
        y, weight, x = rows
        scores = self.scores(parameters, buffers, x)
        if self.task == "regression":
            return (weight * (scores - y).square()).sum()
        target = y.expand_as(scores)
        return functional.binary_cross_entropy_with_logits(
            scores, target, weight=weight, reduction="sum"
        )

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Rows of numbers as stacked parameters."""
        found, start = {}, 0
        for name, parameter in self.module.named_parameters():
            part = flat[:, start : start + parameter.numel()]
            found[name] = part.reshape(len(flat), *parameter.shape)
            start += parameter.numel()
        return found

    def step(
        self,
        state: Tensors,
        rates: Tensors,
        buffers: Tensors,
        growth: Tensor,
        *rows: Tensor,
    ) -> Tensors:
        """One step of AdamW; `state` is all numbers and their two moments, see `_growth`."""
        flat, first, second = state
        rate, decay = rates
        slopes = grad(self.loss)(self.named(flat), buffers, *rows)
        slope = torch.cat([part.reshape(len(flat), -1) for part in slopes.values()], dim=1)
        first = torch.lerp(first, slope, 1 - _BETAS[0])
        second = torch.addcmul(second * _BETAS[1], slope, slope, value=1 - _BETAS[1])
        change = first / (second.sqrt() / growth[1] + _EPS)
        return flat * (1 - rate * decay) - (rate / growth[0]) * change, first, second

    def predict(self, flat: Tensor, buffers: Tensors, x: Tensor) -> Tensor:
        return self.scores(self.named(flat), buffers, x)


class Stack:
    """Members that learn from the same batches, each with its own rate and decay of weights."""

    def __init__(
        self, modules: Sequence[nn.Module], form: Form, rates: Sequence[tuple[float, float]]
    ) -> None:
        parameters, buffers = stack_module_state(list(modules))
        self.form = form
        self.buffers = tuple(buffers.values())
        self.rates = tuple(torch.tensor(rates).T[..., None])
        flat = torch.cat([p.detach().reshape(len(p), -1) for p in parameters.values()], dim=1)
        self.state: Tensors = flat, torch.zeros_like(flat), torch.zeros_like(flat)
        self.n_steps = 0

    def __len__(self) -> int:
        return len(self.state[0])

    @torch.no_grad()
    def learn(self, x: Tensor, y: Tensor, order: Tensor, batch: int) -> None:
        """One epoch: rows of x and y in an order that is shared, (n,), or (n_members, n).

        The last batch is filled up with rows of weight 0.
        """
        n = order.shape[-1]
        batch = min(batch, n)
        n_batches = math.ceil(n / batch)
        n_last = n - (n_batches - 1) * batch
        weight = torch.full((n_batches, batch), 1.0 / batch)
        weight[-1] = (torch.arange(batch) < n_last) / n_last
        filled = torch.cat([order, order[..., : n_batches * batch - n]], dim=-1)
        growth = _growth(self.n_steps, n_batches)
        for g, w, rows in zip(growth, weight, torch.split(filled, batch, dim=-1), strict=True):
            arguments = self.state, self.rates, self.buffers, g, y[rows], w, x[rows]
            self.state = self._program("step", arguments)(*arguments)
        self.n_steps += n_batches

    @torch.no_grad()
    def predict(self, x: Tensor) -> Tensor:
        """Raw scores, (n_members, n_rows)."""
        arguments = self.state[0], self.buffers, x
        scores: Tensor = self._program("predict", arguments)(*arguments)
        return scores

    def keep(self, members: Sequence[int]) -> None:
        """Go on with some members."""
        index = torch.as_tensor(members)
        self.state = tuple(part[index] for part in self.state)
        self.rates = tuple(part[index] for part in self.rates)
        self.buffers = tuple(part[index] for part in self.buffers)

    @torch.no_grad()
    def unstack(self, module: nn.Module, member: int = 0) -> nn.Module:
        """A module of this form with the numbers of a member."""
        named = self.form.named(self.state[0][member : member + 1])
        for name, parameter in module.named_parameters():
            parameter.copy_(named[name][0])
        return module

    def _program(self, what: str, arguments: tuple[Any, ...]) -> Program:
        """What is called often is traced, which takes as long as some hundred calls."""
        key = self.form.key, self.form.task, what, len(self), tuple(arguments[-1].shape)
        plain: Program = getattr(self.form, what)
        _calls[key] += 1
        if key not in _programs and _calls[key] > _FEW:
            _programs[key] = trace(plain, arguments)
        return _programs.get(key, plain)


def _growth(start: int, n: int) -> Tensor:
    """What Adam divides its moments by: 1 - β₁ᵗ, and the root of 1 - β₂ᵗ, for the next n steps."""
    t = torch.arange(start + 1, start + n + 1, dtype=torch.float64)
    first, second = (1 - beta**t for beta in _BETAS)
    return torch.stack([first, second.sqrt()], dim=1).float()


def trace(function: Program, arguments: tuple[Any, ...]) -> Program:
    """The operators of a function without Python, for arguments of the same shapes."""
    flat, form = tree_flatten(arguments)
    graph = make_fx(lambda *tensors: function(*tree_unflatten(tensors, form)))(*flat)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript; torch is pinned
        program: Program = torch.jit.trace(graph, tuple(flat), check_trace=False)  # type: ignore[no-untyped-call]
    return lambda *given: program(*tree_leaves(given))
