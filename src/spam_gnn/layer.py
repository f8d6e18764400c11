"""`S2Conv`, the sparse signed layer: project, code, aggregate. The aggregation rule is `_aggregate`, below."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.choices import Aggregate, GammaMode
from spam_gnn.coding import Coder, UnrolledCoder, make_coder
from spam_gnn.errors import BadInput, one_of
from spam_gnn.graph import Direction
from spam_gnn.graph_checks import check_ends
from spam_gnn.initial import inverse_softplus
from spam_gnn.kernels import KERNELS, chosen
from spam_gnn.kernels.conv import Activation, Weights, fused_layer
from spam_gnn.kernels.infer import Layer
from spam_gnn.kernels.signed import SignedSums
from spam_gnn.randomness import stream
from spam_gnn.sampling import SignedGraphs
from spam_gnn.structure import Messages

ALL_ROWS = slice(None)


@dataclass(frozen=True)
class S2Config:
    """Settings of one sparse signed layer, with their defaults."""

    coder: str = "unrolled"  # exact, unrolled, amortised, uniform
    coder_steps: int = 3  # T of the unrolled coder
    penalty: float = 0.1  # lambda of the LASSO, the soft threshold of the amortised coder
    aggregate: Aggregate = "normalised"  # plain is the paper's sum
    self_term: bool = True  # W_self h_i; without it a node with no neighbours is a constant
    separate_signs: bool = False  # own output weights for negative messages
    gamma: float = 1.0  # strength of negative messages
    gamma_mode: GammaMode = "fixed"
    directions: tuple[Direction, ...] = ("in",)
    kernel: str = "auto"  # auto, fused, csr, torch: same results, different speed


@dataclass(frozen=True, eq=False)
class LayerOutput:
    """h' (K, n, d_out), and mean_i ||alpha_i||_1 of each sample (K,) for the sparsity term."""

    hidden: Tensor
    code_norm: Tensor


class S2Conv(nn.Module):
    r"""Sparse signed message passing (paper Eqs. local-lasso and signed-aggregation).

    V = H W_v, t = H W_t, alpha_i = argmin ||t_i - V_i a||^2 + lambda ||a||_1 over the neighbours present in Z, then

    h_i' = W_o (sum_{j in N+} alpha_ij v_j - gamma sum_{j in N-} |alpha_ij| v_j) + b + W_self h_i.

    `aggregate="normalised"` replaces the bracket by (s v_i + sum_j w_ij v_j) / (s + sum_j |w_ij|), w the signed weights and
    s > 0 learned: a mean instead of a sum, which keeps hubs and leaves on one scale. With two directions each has its own W_o.

    Args:
        in_channels: d_in.
        out_channels: d_out.
        value_channels: d_val, the size of values and targets; defaults to d_out.
        config: see :class:`S2Config`.
        generator: source of the initial weights.

    Shapes:
        x (n, d_in) or (K, n, d_in); edge_index (2, m); edge_sign (m,) or (K, m) in {-1, 0, +1}; output (n, d_out), or
        (K, n, d_out) where x or edge_sign has a K.

    Example:
        >>> conv = S2Conv(16, 32)
        >>> h = conv(torch.randn(4, 16), torch.tensor([[0, 1, 2], [1, 2, 3]]), edge_sign=torch.tensor([1, -1, 0]))
        >>> h.shape
        torch.Size([4, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        value_channels: int | None = None,
        config: S2Config | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config = config or S2Config()
        one_of(self.config.aggregate, ("plain", "normalised"), "aggregate")
        one_of(self.config.gamma_mode, ("fixed", "learned"), "gamma_mode")
        one_of(self.config.kernel, KERNELS, "kernel")
        if self.config.gamma < 0.0:
            raise BadInput(f"gamma: found {self.config.gamma}; the strength of negative messages must be 0 or more")
        self.in_channels, self.out_channels = in_channels, out_channels
        width = value_channels or out_channels
        generator = generator or stream(0, "S2Conv")
        self.to_value = nn.Parameter(torch.empty(in_channels, width))
        codes_targets = self.config.coder != "uniform"  # the only coder that does not look at the target
        self.to_target = nn.Parameter(torch.empty(in_channels, width), requires_grad=codes_targets)
        ways = len(self.config.directions)
        signs = 2 if self.config.separate_signs else 1
        self.to_out = nn.Parameter(torch.empty(ways, signs, width, out_channels))
        sign = torch.tensor([[1.0], [-1.0]]).repeat_interleave(width, 0)
        self.register_buffer("halves", sign, persistent=False)  # of [support | oppose]: what opposes is subtracted
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.to_self = nn.Parameter(torch.empty(in_channels, out_channels)) if self.config.self_term else None
        self.coders = nn.ModuleList([make_coder(self.config, width, generator) for _ in range(ways)])
        self.raw_gamma = nn.Parameter(inverse_softplus(self.config.gamma))
        self.raw_gamma.requires_grad_(self.config.gamma_mode == "learned")
        self.raw_own_weight = nn.Parameter(inverse_softplus(1.0), requires_grad=self.config.aggregate == "normalised")
        self._initialise(generator)

    def _initialise(self, generator: torch.Generator) -> None:
        for weight in (self.to_value, self.to_out, self.to_self):
            if weight is not None:
                bound = (6.0 / (weight.shape[-2] + weight.shape[-1])) ** 0.5
                nn.init.uniform_(weight, -bound, bound, generator=generator)
        with torch.no_grad():  # the target starts as the value, so that alike nodes code each other from the first step
            self.to_target.copy_(self.to_value)

    def reset_parameters(self, seed: int = 0) -> None:
        """Draw fresh weights, as PyG layers do; the coder's own parameters start anew as well."""
        generator = stream(seed, "S2Conv")
        nn.init.zeros_(self.bias)
        self._initialise(generator)
        with torch.no_grad():  # in place: an optimiser that holds the parameters goes on with them
            self.raw_gamma.copy_(inverse_softplus(self.config.gamma))
            self.raw_own_weight.copy_(inverse_softplus(1.0))
        for coder in self.coders:
            coder.load_state_dict(make_coder(self.config, self.to_value.shape[1], generator).state_dict())

    @property
    def gamma(self) -> Tensor:
        """Strength of negative messages, >= 0."""
        if self.config.gamma_mode == "fixed":
            return self.raw_gamma.new_tensor(self.config.gamma)
        return torch.nn.functional.softplus(self.raw_gamma)

    def forward(self, x: Tensor, edge_index: Tensor, edge_sign: Tensor | None = None) -> Tensor:
        """PyG's calling convention; every edge is positive unless `edge_sign` says otherwise."""
        hidden = x if x.ndim == 3 else x.unsqueeze(0)
        check_ends(edge_index, hidden.shape[1])  # compiled loops would read whatever lies there
        m = edge_index.shape[1]
        if edge_sign is not None and (edge_sign.ndim not in (1, 2) or edge_sign.shape[-1] != m):
            raise BadInput(f"edge_sign: found shape {tuple(edge_sign.shape)} for {m} edges; give (m,) or (K, m)")
        sign = torch.ones(1, m) if edge_sign is None else edge_sign.reshape(-1, m)
        signs = SignedGraphs((sign > 0).to(x.dtype), (sign < 0).to(x.dtype), x.new_zeros(sign.shape[0]))
        neighbours = tuple(
            Messages.build(*(edge_index if way == "in" else edge_index.flip(0)), num_nodes=hidden.shape[1])
            for way in self.config.directions
        )
        out = self.pass_messages(hidden, neighbours, signs).hidden
        return out[0] if x.ndim == 2 and out.shape[0] == 1 else out

    def pass_messages(self, hidden: Tensor, neighbours: tuple[Messages, ...], signs: SignedGraphs) -> LayerOutput:
        """hidden (K or 1, n, d_in), one `Messages` per configured direction, K signed graphs -> (K, n, d_out)."""
        if self.fuses(hidden):
            return self.pass_fused(hidden, neighbours[0], signs, None)
        return self.pass_projected(hidden @ self.projections, neighbours, signs)

    def fuses(self, hidden: Tensor) -> bool:
        """Whether the whole layer runs in the compiled loops, which know the default aggregation rule and two coders."""
        c = self.config
        known = c.aggregate == "normalised" and c.separate_signs and c.coder in ("uniform", "unrolled")
        return known and len(c.directions) == 1 and chosen(c.kernel, hidden.device) == "fused"

    def pass_fused(
        self, hidden: Tensor, messages: Messages, signs: SignedGraphs, activation: Activation | None
    ) -> LayerOutput:
        """The same as :meth:`pass_projected` of the projections, followed by the activation if there is one."""
        local = signs if messages.in_edge_order else signs.along(messages.edge)
        # nothing opposes where every edge is taken as it was observed; signs that are learned may
        opposed = local.negative.requires_grad or bool(local.negative.any())
        weights, steps, penalty, own, gamma = self._operands(opposed=opposed)
        out, masses = fused_layer(
            messages, hidden, weights, local.positive, local.negative, penalty, own, gamma, steps, activation
        )
        return LayerOutput(out, masses.sum(1).mean(1))

    def as_layer(self) -> Layer:
        """What the loops that make no gradient need of a layer that fuses."""
        weights, steps, *scalars = self._operands(opposed=True)
        return Layer(weights, steps, *(float(scalar.detach()) for scalar in scalars))

    def _operands(self, *, opposed: bool) -> tuple[Weights, int, Tensor, Tensor, Tensor]:
        """Weights, T, lambda, s and gamma of a layer that fuses."""
        coder, to_out = self.coders[0], self.to_out.flatten(0, 2)  # one direction: [support | oppose] (2 d_val, d_out)
        unrolls = isinstance(coder, UnrolledCoder)
        steps, penalty = (coder.steps, coder.penalty) if unrolls else (0, self.bias.new_zeros(()))
        width = self.to_value.shape[1]
        outputs = to_out * self.get_buffer("halves") if opposed else to_out[:width]
        weights = Weights(self.to_value, self.to_target if unrolls else None, self.to_self, outputs, self.bias)
        return weights, steps, penalty, torch.nn.functional.softplus(self.raw_own_weight), self.gamma

    @property
    def projections(self) -> Tensor:
        """W_v, W_t and W_self side by side, so that one product makes all three; what a configuration lacks is left out."""
        parts = [self.to_value, self.to_target if self.config.coder != "uniform" else None, self.to_self]
        return torch.cat([w for w in parts if w is not None], 1)

    def parted(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """(K or 1, n, sum of widths) -> values, targets, and the self part if there is one."""
        widths = [self.to_value.shape[1]] * (1 if self.config.coder == "uniform" else 2)
        parts = projected.split([*widths, projected.shape[-1] - sum(widths)], -1)
        return parts[0], parts[len(widths) - 1], parts[-1] if self.to_self is not None else None

    def pass_projected(self, projected: Tensor, neighbours: tuple[Messages, ...], signs: SignedGraphs) -> LayerOutput:
        """The layer after its input projections; the model calls it directly when the input features are sparse."""
        return self.pass_parts(*self.parted(projected), neighbours, signs)

    def pass_parts(
        self, values: Tensor, target: Tensor, self_part: Tensor | None, neighbours: tuple[Messages, ...], signs: SignedGraphs,
        rows: slice = ALL_ROWS,
    ) -> LayerOutput:  # fmt: skip
        """The layer after its projections are parted; `self_part` is of the `rows` whose result is wanted, where the other
        nodes are only there to be heard."""
        out = self.bias if self_part is None else self_part + self.bias
        norm = values.new_zeros(signs.count)
        for way, messages in enumerate(neighbours):
            as_is = messages.in_edge_order and messages.count == signs.positive.shape[1]
            local = signs if as_is else signs.along(messages.edge)
            coder = self.coders[way]
            assert isinstance(coder, Coder)
            sums = coder.signed_sums(messages, target, values, local.positive, local.negative)
            sums = sums if rows == ALL_ROWS else SignedSums(*(s[:, rows] for s in vars(sums).values()))
            out = out + self._aggregate(sums, values[:, rows], self.to_out[way])
            norm = norm + (sums.plus_mass + sums.minus_mass).mean(1)
        return LayerOutput(out, norm / len(neighbours))

    def _aggregate(self, sums: SignedSums, values: Tensor, to_out: Tensor) -> Tensor:
        """The aggregation rule (paper Eq. signed-aggregation): coded sums (K, n, d_val) -> (K, n, d_out)."""
        if not self.config.separate_signs:
            total = self._normalise(sums.plus - self.gamma * sums.minus, sums.plus_mass + self.gamma * sums.minus_mass, values)
            return total @ to_out[0]
        support = self._normalise(sums.plus, sums.plus_mass, values)
        oppose = self._normalise(self.gamma * sums.minus, self.gamma * sums.minus_mass, None)
        return torch.cat([support, oppose], -1) @ torch.cat([to_out[0], -to_out[1]])

    def _normalise(self, total: Tensor, mass: Tensor, own_values: Tensor | None) -> Tensor:
        """(s v_i + total) / (s + mass), or the total as it is; without `own_values` the node's own part is left out."""
        if self.config.aggregate == "plain":
            return total
        own = torch.nn.functional.softplus(self.raw_own_weight)
        return (total if own_values is None else total + own * own_values) / (own + mass).unsqueeze(-1)
