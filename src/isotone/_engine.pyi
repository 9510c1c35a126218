"""Types of the compiled kernels; see ``cpp/bindings``.

Arrays are C-contiguous and in CPU memory; anything that speaks DLPack or the buffer protocol will
do. Those of the sorters have shape (n_groups, group_size), values being float32 or float64 and
indices int16. Those of the trainer are float32 or float64 throughout, one row per member.
"""

from collections.abc import Sequence
from typing import Any

INTERFACE: int
MAX_GROUP_SIZE: int
MAX_WIDTH: int
MAX_STEPS: int
MAX_DEPTH: int
MAX_MATRIX: int
MAX_STACK_BYTES: int
MAX_LAYERS: int
MAX_PARAMETERS: int

def group_sort(x: Any, values: Any, isa: str = "") -> None: ...
def group_sort_index(x: Any, values: Any, index: Any, isa: str = "") -> None: ...
def gather(grad: Any, index: Any, out: Any) -> None: ...
def scatter(grad: Any, index: Any, out: Any) -> None: ...
def comparators(n: int) -> list[tuple[int, int]]: ...
def enter_default_state() -> int: ...
def leave_default_state(found: int) -> None: ...
def instruction_sets() -> list[str]: ...

class Stack:
    def __init__(
        self,
        widths: Sequence[int],
        group_sizes: Sequence[int],
        chain: str,
        loss: str,
        learns_lipschitz: bool = False,
        fields: Sequence[tuple[int, bool]] = (),
        mask: Any = None,
    ) -> None: ...
    @property
    def n_parameters(self) -> int: ...

def train(
    stack: Stack,
    bounds: Any,
    feature_scale: Any,
    residual: Any,
    loss_parameter: Any,
    parameters: Any,
    first_moment: Any,
    second_moment: Any,
    x: Any,
    cells: Any,
    usual: Any,
    y: Any,
    sample_weight: Any,
    order: Any,
    batch_size: int,
    schedule: Any,
    beta1: float,
    beta2: float,
    eps: float,
    lipschitz_rate: float,
    losses: Any,
    threads: int = 1,
    isa: str = "",
) -> None: ...
def evaluate(
    stack: Stack,
    bounds: Any,
    feature_scale: Any,
    residual: Any,
    loss_parameter: Any,
    parameters: Any,
    x: Any,
    cells: Any,
    usual: Any,
    y: Any,
    sample_weight: Any,
    gradients: Any,
    predictions: Any,
    losses: Any,
    threads: int = 1,
    isa: str = "",
) -> None: ...
def find_probabilities(logits: Any, out: Any, isa: str = "") -> None: ...

class Program:
    def __init__(
        self,
        precision: str,
        log: Sequence[bool],
        scaling: Any,
        residual: Any,
        clip: float,
        grid: float,
        threads: int = 1,
        isa: str = "",
    ) -> None: ...
    def dense(self, weight: Any, bias: Any) -> None: ...
    def copies(self, counts: Sequence[int], ends: Sequence[Any], residual: Any) -> None: ...
    def look_up(self, weight: Any, bias: Any) -> None: ...
    def sort(self, group_size: int) -> None: ...
    def pointwise(self, name: str, slope: float) -> None: ...
    def save(self) -> None: ...
    def merge(self, keep: float, add: float) -> None: ...
    def fork(self) -> None: ...
    def part(self, weight: float, last: bool) -> None: ...
    def score(self, X: Any, out: Any, fill: float) -> int: ...
