"""`bbde`: adaptive connection sampling, DropEdge whose rates are learned per layer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spam_gnn.baselines.base import Shape, System
from spam_gnn.baselines.identity_order import pair_uniforms
from spam_gnn.baselines.sampled import SampledNetwork, SampledSettings
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.initial import glorot
from spam_gnn.kernels.csr import gather_sum
from spam_gnn.randomness import dropout, node_uniforms, seed_for, stream

_EULER = 0.5772156649015329


@dataclass(frozen=True)
class BBDESettings(SampledSettings):
    """`blocks` of channels have masks of their own (1: DropEdge, more: GDC); `keep` fixes the rate instead of learning it.

    `prior` is the concentration of the Beta prior, `kl_weight` the weight of its divergence, `temperature` that of the
    concrete masks.
    """

    hidden: int = 128
    layers: int = 4
    dropout: float = 0.0
    predict_samples: int = 12
    blocks: int = 1
    keep: float | None = None
    prior: float = 0.8
    kl_weight: float = 1e-4
    temperature: float = 0.67

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.blocks < 1 or self.hidden % self.blocks:
            raise BadInput(f"blocks: found {self.blocks} for hidden {self.hidden}; use a divisor of hidden")
        if self.keep is not None and not 0.0 <= self.keep <= 1.0:
            raise BadInput(f"keep: found {self.keep}; use a number from 0 to 1, or leave it out to learn the rate")
        if self.temperature <= 0.0 or self.prior <= 0.0:
            raise BadInput(f"temperature, prior: found {self.temperature}, {self.prior}; use numbers above 0")


def kumaraswamy_kl(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """KL(Kumaraswamy(a, b) || Beta(alpha, 1)), elementwise (Nalisnick and Smyth 2017, with beta = 1).

    (1 - alpha / a) (-gamma - digamma(b) - 1 / b) + log(a b / alpha) - (b - 1) / b.
    """
    return (1.0 - alpha / a) * (-_EULER - torch.digamma(b) - 1.0 / b) + torch.log(a * b / alpha) - (b - 1.0) / b


class BetaBernoulliDropEdge(SampledNetwork):
    """h^(l+1) = relu((N(A) o Z^(l)) h^(l) W + b), z_e^(l) ~ Bernoulli(pi_l), pi_l ~ Kumaraswamy(a_l, b_l) (Hasanzadeh et al.
    2020).

    N(A) = D~^-1/2 (A + I) D~^-1/2 is formed once and masked afterwards, as in the paper's general form and the authors' code
    (`norm_first`); self-loops are never dropped, since they are not edges of A. Both directions of an edge share one mask.
    Decided: gradients of the rates go through relaxed (concrete) masks, one of the paper's two estimators; ARM needs a second
    pass and a single rate shared by all edges makes it noisy. Masks are hard at prediction, and the rate pi_l is drawn anew
    for each sample.

    Shapes: masks (blocks, m), h (n, hidden), logits (n, C).
    """

    settings: BBDESettings

    def __init__(self, shape: Shape, settings: BBDESettings, seed: int) -> None:
        super().__init__(shape, settings)
        generator, h, c = stream(seed, "weights"), settings.hidden, shape.num_classes
        sizes = [shape.num_features, *[h] * (settings.layers - 1), c]
        self.weights = nn.ParameterList([glorot(a, b, generator) for a, b in itertools.pairwise(sizes)])
        self.biases = nn.ParameterList([torch.zeros(b) for b in sizes[1:]])
        if settings.keep is None:  # the authors' start: a = softplus(1.25), b = softplus(0.5)
            self.raw_a = nn.Parameter(torch.full((settings.layers,), 1.25))
            self.raw_b = nn.Parameter(torch.full((settings.layers,), 0.5))

    def rates(self) -> tuple[Tensor, Tensor]:
        """(layers,) each: a and b of the Kumaraswamy posterior of the keep rates."""
        return nn.functional.softplus(self.raw_a), nn.functional.softplus(self.raw_b)

    def masks(self, graph: Graph, layer: int, seed: int, relaxed: bool) -> Tensor:
        """(blocks, m) keep masks of a layer over the stored edges; the first layer has one mask, repeated by broadcasting."""
        c = self.settings
        count = c.blocks if layer else 1
        seeds = [seed_for(seed, "mask", layer, block) for block in range(count)]
        uniforms = pair_uniforms(graph, graph.edge_index, seeds)
        if c.keep is not None:
            return (uniforms < c.keep).to(torch.float32)
        a, b = self.rates()
        u = node_uniforms(torch.tensor([layer]), seed_for(seed, "rate", layer))[0].clamp(1e-6, 1.0 - 1e-6).to(torch.float32)
        rate = (1.0 - u.pow(1.0 / b[layer])).pow(1.0 / a[layer]).clamp(1e-5, 1.0 - 1e-5)
        if not relaxed:
            return (uniforms < rate).to(torch.float32)
        noise = torch.log(uniforms) - torch.log1p(-uniforms)
        return torch.sigmoid((torch.logit(rate) - noise.to(torch.float32)) / c.temperature)

    def spread(self, graph: Graph, h: Tensor, masks: Tensor) -> Tensor:
        """(N(A) o Z) h with the channels of h split over the masks: (n, d) -> (n, d)."""
        messages = graph.messages("in")
        scale = (messages.degree.to(h.dtype) + 1.0).rsqrt()
        weights = masks[:, messages.edge] * (scale[messages.target] * scale[messages.source])
        blocks = torch.stack(h.chunk(masks.shape[0], dim=1))  # (blocks, n, d / blocks)
        around = gather_sum(messages, weights, blocks)
        return torch.cat(list(around), dim=1) + h * scale.square().unsqueeze(1)

    def draws(self, graph: Graph, seeds: list[int], generator: torch.Generator | None) -> Tensor:
        return torch.stack([self.draw(graph, seed, generator) for seed in seeds])

    def draw(self, graph: Graph, seed: int, generator: torch.Generator | None) -> Tensor:
        c, h = self.settings, None
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            masks = self.masks(graph, layer, seed, relaxed=generator is not None)
            if h is None:
                h = self.spread(graph, graph.features.project(weight, c.dropout, generator), masks) + bias
            else:
                h = self.spread(graph, dropout(torch.relu(h), c.dropout, generator), masks) @ weight + bias
        assert h is not None
        return h

    def penalty(self, graph: Graph, logits: Tensor) -> dict[str, Tensor]:  # noqa: ARG002 - of the rates alone
        if self.settings.keep is not None:
            return {}
        a, b = self.rates()
        return {"rate_kl": self.settings.kl_weight * kumaraswamy_kl(a, b, self.settings.prior).sum()}


SYSTEMS = (
    System(
        "bbde", "BBDE", "uncertainty", "Hasanzadeh et al., ICML 2020 (adaptive connection sampling)",
        "GCN whose edges are dropped at rates that are learned, averaged over masks.",
        BetaBernoulliDropEdge, BBDESettings(),
        {"learning_rate": 0.005, "weight_decay": 5e-4, "epochs": 500, "patience": 100, "val_samples": 4},
        {"layers": (2, 4), "hidden": (64, 128), "blocks": (1, 2), "dropout": (0.0, 0.5), "weight_decay": (5e-4, 5e-3),
         "learning_rate": (0.005, 0.01)},
    ),
)  # fmt: skip
