"""Homophily and strong plain systems against their equations: PyG's own layers, or NumPy; and their special case."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import (
    APPNP,
    LINKX,
    GATConv,
    GCN2Conv,
    GCNConv,
    JumpingKnowledge,
    SAGEConv,
)

from conftest import tiny_graph
from spam_gnn.baselines.base import Settings, Shape
from spam_gnn.baselines.registry import find, systems
from spam_gnn.baselines.smoothing import smoothing
from spam_gnn.errors import BadInput
from spam_gnn.graph import Graph
from spam_gnn.randomness import stream

MINE = ("mlp", "gcn", "gat", "sage", "jknet", "dropedge", "gcnii", "appnp", "linkx", "tuned-gcn", "tuned-gat", "tuned-sage")
DENSE = {"scaling": "none", "dropout": 0.0}


@pytest.fixture(scope="module")
def graph():
    """12 nodes, 16 edges, one of the nodes isolated."""
    return tiny_graph(3, nodes=12, edges=16, features=7)


def make(name, graph, **settings):
    system = find(name)
    return system.make(Shape.of(graph), system.settings.with_settings({**DENSE, **settings}), 5).eval()


def logits(model, graph):
    with torch.no_grad():
        return model.logits(model.prepare(graph), None)


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def holding(conv, weight, bias=None):
    """A PyG convolution with our weight (inputs, outputs) and bias put in."""
    with torch.no_grad():
        conv.lin.weight.copy_(weight.t())
        if bias is not None:
            conv.bias.copy_(bias)
    return conv.eval()


def dense_operator(graph):
    """D~^-1/2 (A + I) D~^-1/2 in NumPy."""
    a = np.eye(graph.num_nodes)
    a[graph.edge_index[1].numpy(), graph.edge_index[0].numpy()] = 1.0
    root = 1.0 / np.sqrt(a.sum(1))
    return root[:, None] * a * root[None, :]


def numbers(*tensors):
    return [t.detach().double().numpy() for t in tensors]


def test_the_operators_are_those_of_the_equations(graph):
    n = graph.num_nodes
    close(smoothing(graph).to_dense(), torch.from_numpy(dense_operator(graph)).float())
    a = np.zeros((n, n))
    a[graph.edge_index[1].numpy(), graph.edge_index[0].numpy()] = 1.0
    close(smoothing(graph, "mean").to_dense(), torch.from_numpy(a / np.maximum(a.sum(1, keepdims=True), 1)).float())
    loops = a + np.eye(n)
    close(smoothing(graph, "mean-with-self").to_dense(), torch.from_numpy(loops / loops.sum(1, keepdims=True)).float())


def test_the_gradient_goes_back_through_the_transpose():
    """A directed mean is not symmetric: its gradient must use D^-1 A transposed."""
    directed = Graph.build(torch.eye(4), torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 1, 2]]), directed=True)
    h = torch.randn(4, 3, generator=stream(0, "h"), requires_grad=True)
    operator = smoothing(directed, "mean")
    pull = torch.randn(4, 3, generator=stream(1, "g"))
    (operator.project(h) * pull).sum().backward()
    close(h.grad, operator.to_dense().t() @ pull)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gcn_is_pygs(graph, layers):
    model, h = make("gcn", graph, hidden=5, layers=layers), graph.x
    for place, layer in enumerate(model.stack.layers):
        h = holding(GCNConv(*layer.weight.shape), layer.weight, layer.bias)(h, graph.edge_index)
        h = h if place == layers - 1 else h.relu()
    close(logits(model, graph), h)


def test_mlp_reads_features_only(graph):
    model = make("mlp", graph, layers=3)
    bare = dataclasses.replace(graph, edge_index=graph.edge_index[:, :0])
    assert torch.equal(logits(model, graph), logits(model, bare))
    first, second, third = model.stack.layers
    h = torch.relu(torch.relu(graph.x @ first.weight + first.bias) @ second.weight + second.bias)
    close(logits(model, graph), h @ third.weight + third.bias)


def test_gat_is_pygs_and_equation_4(graph):
    model = make("gat", graph, hidden=3, heads=2, attention_dropout=0.0)
    h = graph.x
    for place, layer in enumerate(model.layers):
        (heads, width), last = layer.to_source.shape, place == 1
        nn.init.normal_(layer.bias, generator=stream(0, "bias"))
        conv = holding(GATConv(h.shape[1], width, heads, concat=not last), layer.project.weight, layer.bias)
        conv.att_src.data, conv.att_dst.data = layer.to_source.detach()[None], layer.to_target.detach()[None]
        h = conv(h, graph.edge_index)
        h = h if last else nn.functional.elu(h)
    close(logits(model, graph), h.detach())
    # one head written out: a_ij = softmax_j LeakyReLU(a^T [W h_i | W h_j]) over N(i) and i
    layer = model.layers[0]
    x, w, to_source, to_target = numbers(graph.x, layer.project.weight, layer.to_source, layer.to_target)
    wh = (x @ w)[:, :3]
    score = (wh @ to_target[0])[:, None] + (wh @ to_source[0])[None, :]
    score = np.where(score > 0, score, 0.2 * score)
    score[dense_operator(graph) == 0] = -np.inf
    share = np.exp(score - score.max(1, keepdims=True))
    out = share / share.sum(1, keepdims=True) @ wh + layer.bias.detach().numpy()[:3]
    with torch.no_grad():
        ours = layer.propagate(layer.project(graph.x), graph, None)[:, :3]
    close(ours, torch.from_numpy(out).float())


def test_attention_has_the_gradient_of_pygs(graph):
    """The sparse products must send back what PyG's gather and scatter do."""
    layer = make("gat", graph, hidden=3, heads=2, attention_dropout=0.0).layers[0]
    conv = holding(GATConv(7, 3, 2), layer.project.weight.detach(), layer.bias.detach())
    conv.att_src.data, conv.att_dst.data = layer.to_source.detach()[None].clone(), layer.to_target.detach()[None].clone()
    pull = torch.randn(graph.num_nodes, 6, generator=stream(0, "pull"))
    (layer.propagate(layer.project(graph.x), graph, None) * pull).sum().backward()
    (conv(graph.x, graph.edge_index) * pull).sum().backward()
    close(layer.project.weight.grad, conv.lin.weight.grad.t())
    close(layer.to_source.grad, conv.att_src.grad[0])
    close(layer.to_target.grad, conv.att_dst.grad[0])


def test_sage_is_pygs(graph):
    model, h = make("sage", graph, hidden=4, layers=2, normalise=True), graph.x
    for place, layer in enumerate(model.layers):
        own, heard = layer.project.weight.detach().chunk(2, dim=1)
        conv = SAGEConv(h.shape[1], own.shape[1])
        conv.lin_r.weight.data, conv.lin_l.weight.data, conv.lin_l.bias.data = own.t(), heard.t(), layer.bias.detach()
        h = conv(h, graph.edge_index)
        h = h if place == 1 else nn.functional.normalize(h.relu())
    close(logits(model, graph), h.detach())


@pytest.mark.parametrize("jump", ["cat", "max", "lstm", "last"])
def test_jknet_joins_the_layers_of_a_gcn(graph, jump):
    model, h, seen = make("jknet", graph, hidden=4, layers=3, jump=jump), graph.x, []
    for layer in model.layers:
        h = holding(GCNConv(h.shape[1], 4), layer.weight, layer.bias)(h, graph.edge_index).relu()
        seen.append(h)
    joined = {"cat": lambda: torch.cat(seen, 1), "max": lambda: torch.stack(seen).max(0).values, "last": lambda: h,
              "lstm": lambda: model.jump(seen)}[jump]()  # fmt: skip
    close(logits(model, graph), (joined @ model.classify.weight + model.classify.bias).detach())
    assert (model.jump is None) == (jump == "last")
    assert jump == "last" or isinstance(model.jump, JumpingKnowledge)


def test_jknet_that_ignores_early_layers_is_a_gcn(graph):
    cat, last = make("jknet", graph, hidden=4, layers=3, jump="cat"), make("jknet", graph, hidden=4, layers=3, jump="last")
    last.layers.load_state_dict(cat.layers.state_dict())
    with torch.no_grad():
        cat.classify.weight[:8] = 0.0
        last.classify.weight.copy_(cat.classify.weight[8:])
        last.classify.bias.copy_(cat.classify.bias)
    close(logits(cat, graph), logits(last, graph))


def test_dropedge_without_dropping_is_gcn(graph):
    gcn, none = make("gcn", graph, hidden=6), make("dropedge", graph, hidden=6, edge_drop=0.0)
    assert torch.equal(logits(gcn, graph), logits(none, graph))
    for model in (gcn, none):  # in training, too
        model.train()
    assert torch.equal(gcn.logits(graph, stream(1, "d")), none.logits(graph, stream(1, "d")))


def test_dropedge_normalises_what_is_left_and_predicts_with_all():
    graph = tiny_graph(0, nodes=60, edges=400)
    model = make("dropedge", graph, edge_drop=0.3)
    assert torch.equal(model.thinned(graph, None).to_dense(), smoothing(graph).to_dense())
    thin = model.thinned(graph, stream(0, "d")).to_dense()
    present = thin != 0
    assert torch.equal(present, present.t()), "an undirected edge goes or stays in both directions"
    assert bool(present.diagonal().all())
    share = (int(present.sum()) - 60) / graph.num_edges
    assert abs(share - 0.7) < 4 * (0.3 * 0.7 / 400) ** 0.5, "four standard deviations of a fair draw"
    root = present.float().sum(1).rsqrt()
    close(thin, root[:, None] * present.float() * root[None, :])
    other = model.thinned(graph, stream(1, "d")).to_dense()
    assert not torch.equal(thin != 0, other != 0)


def test_gcnii_is_pygs(graph):
    model = make("gcnii", graph, hidden=5, layers=3, alpha=0.2, theta=0.7)
    first = h = torch.relu(graph.x @ model.encode.weight + model.encode.bias)
    for place, layer in enumerate(model.convs):
        conv = GCN2Conv(5, alpha=0.2, theta=0.7, layer=place + 1)
        conv.weight1.data = layer.weight.detach()
        h = conv(h, first, graph.edge_index).relu()
    close(logits(model, graph), (h @ model.classify.weight + model.classify.bias).detach())


def test_gcnii_with_alpha_one_reads_features_only(graph):
    model = make("gcnii", graph, layers=4, alpha=1.0)
    bare = dataclasses.replace(graph, edge_index=graph.edge_index[:, :0])
    close(logits(model, graph), logits(model, bare))
    assert not torch.equal(logits(make("gcnii", graph, layers=4), graph), logits(make("gcnii", graph, layers=4), bare))


def test_appnp_is_pygs_and_without_steps_an_mlp(graph):
    mlp, model = make("mlp", graph), make("appnp", graph, steps=4, alpha=0.15)
    close(logits(model, graph), APPNP(4, 0.15)(logits(mlp, graph), graph.edge_index))
    assert torch.equal(logits(make("appnp", graph, steps=0), graph), logits(mlp, graph))
    assert torch.equal(logits(make("appnp", graph, alpha=1.0), graph), logits(mlp, graph))


def test_appnp_converges_to_personalised_pagerank(graph):
    """Equation 3: Z = alpha (I - (1 - alpha) P)^-1 H, which many steps approach."""
    model = make("appnp", graph, steps=200, alpha=0.2)
    (h,) = numbers(logits(make("mlp", graph), graph))
    wanted = 0.2 * np.linalg.solve(np.eye(graph.num_nodes) - 0.8 * dense_operator(graph), h)
    close(logits(model, graph), torch.from_numpy(wanted).float())


def test_linkx_is_pygs(graph):
    model = make("linkx", graph, hidden=6, layers=2)
    theirs = LINKX(graph.num_nodes, 7, 6, 3, num_layers=2)
    linears = ((theirs.node_mlp.lins[0], model.of_features), *zip(theirs.final_mlp.lins, model.final, strict=True))
    with torch.no_grad():
        model.norms[0].running_mean.normal_(generator=stream(0, "mean"))
        theirs.final_mlp.norms[0].module.load_state_dict(model.norms[0].state_dict())
        theirs.edge_lin.weight.copy_(model.of_edges.weight)
        theirs.edge_lin.bias.copy_(model.of_edges.bias)
        for linear, layer in linears:
            linear.weight.copy_(layer.weight.t())
            linear.bias.copy_(layer.bias)
        left, right = model.join.weight.chunk(2)
        theirs.cat_lin1.weight.copy_(left.t())
        theirs.cat_lin2.weight.copy_(right.t())
        theirs.cat_lin1.bias.copy_(model.join.bias)
        theirs.cat_lin2.bias.zero_()
    close(logits(model, graph), theirs.eval()(graph.x, graph.edge_index).detach())


def test_linkx_refuses_other_nodes(graph):
    model = make("linkx", graph)
    with pytest.raises(BadInput, match="not the 12 of training"):
        logits(model, tiny_graph(3, nodes=13, edges=16, features=7))


@pytest.mark.parametrize("kind", ["gcn", "gat", "sage"])
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_tuned_block_is_convolution_plus_linear(graph, kind, norm):
    """norm(conv(h) + Linear(h)) of the publication, on the graph with self-loops, by PyG's layers."""
    model = make(f"tuned-{kind}", graph, hidden=4, layers=1, norm=norm, pre_linear=True)
    block, loops = model.blocks[0], torch.arange(graph.num_nodes).expand(2, -1)
    with_loops = torch.cat([graph.edge_index, loops], 1)
    if block.bias is not None:
        nn.init.normal_(block.bias, generator=stream(0, "bias"))
    h = graph.x @ model.before.weight + model.before.bias
    if kind == "gcn":
        heard = holding(GCNConv(4, 4, bias=False), block.heard.weight)(h, graph.edge_index)
    elif kind == "gat":
        conv = holding(GATConv(4, 4, 1, add_self_loops=False, bias=False), block.attention.project.weight)
        source, target = block.attention.to_source.detach(), block.attention.to_target.detach()
        conv.att_src.data, conv.att_dst.data = source[None], target[None]
        heard = conv(h, with_loops)
    else:
        conv = SAGEConv(4, 4, root_weight=False, bias=False)
        conv.lin_l.weight.data = block.heard.weight.detach().t()
        heard = conv(h, with_loops)
    out = heard + h @ block.own.weight + (0.0 if block.bias is None else block.bias)
    out = block.norm(out).relu() @ model.classify.weight + model.classify.bias
    close(logits(model, graph), out.detach())
    assert (block.bias is None) == (norm == "batch"), "a batch norm would take the bias out again"


def test_tuned_gcn_without_its_additions_is_jknet_last(graph):
    """No residual, no norm: a stack of graph convolutions with a linear layer behind it."""
    tuned = make("tuned-gcn", graph, hidden=4, layers=2, norm="none", residual=False)
    plain = make("jknet", graph, hidden=4, layers=2, jump="last")
    with torch.no_grad():
        for block, layer in zip(tuned.blocks, plain.layers, strict=True):
            layer.weight.copy_(block.heard.weight)
            layer.bias.copy_(block.bias)
    plain.classify.load_state_dict(tuned.classify.state_dict())
    close(logits(tuned, graph), logits(plain, graph))


@pytest.mark.parametrize("name", MINE)
def test_dropout_acts_in_training_only_and_follows_its_generator(graph, name):
    system = find(name)
    model = system.make(Shape.of(graph), system.settings.with_settings({"dropout": 0.5}), 0)
    prepared = model.prepare(graph)
    model.train()
    first, again, other = (model.logits(prepared, stream(s, "d")) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", MINE)
def test_search_spaces_hold_values_that_work(graph, name):
    """Every value of the space is accepted, and each name is a setting of the system or of training."""
    from spam_gnn.training import TrainConfig

    system = find(name)
    train = {f.name for f in dataclasses.fields(TrainConfig)}
    for key, values in system.search.items():
        for value in values:
            if key in train:
                TrainConfig(**{**system.train, key: value})
            else:
                system.make(Shape.of(graph), system.settings.with_settings({key: value}), 0)
    TrainConfig(**system.train)


def test_bad_settings_are_one_line():
    for name, settings, words in (
        ("gat", {"heads": 0}, "heads"), ("jknet", {"jump": "cut"}, "did you mean 'cat'"), ("gcnii", {"alpha": 2.0}, "alpha"),
        ("appnp", {"steps": -1}, "steps"), ("dropedge", {"edge_drop": 1.0}, "edge_drop"),
        ("tuned-gcn", {"norm": "bach"}, "batch"),
        ("gcn", {"layers": 0}, "layers"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=words):
            find(name).settings.with_settings(settings)


def test_no_system_is_a_renamed_gcn(graph):
    """With the same seed and sizes, no two systems of this file compute the same function."""
    outputs = [logits(make(name, graph, hidden=8, layers=2), graph) for name in MINE if name != "dropedge"]
    for i, a in enumerate(outputs):
        assert all(not torch.allclose(a, b, atol=1e-4) for b in outputs[:i])
    assert set(MINE) <= set(systems())
    assert isinstance(find("gcn").settings, Settings)
