"""Every system passes the public battery, and the battery catches each kind of broken model with the check made for it."""

# ruff: noqa: ARG002, ARG005 - the signatures belong to the contract, also where a broken model ignores an argument

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.nn import GraphSAGE

from spam_gnn.baselines.base import Settings
from spam_gnn.baselines.plain import PlainNetwork
from spam_gnn.baselines.registry import find, systems
from spam_gnn.errors import BadInput
from spam_gnn.evaluation import CheckFailed, check_node_classifier
from spam_gnn.evaluation.checks.battery import CHECKS
from spam_gnn.evaluation.checks.subject import quick
from spam_gnn.prediction import Prediction
from spam_gnn.randomness import dropout, stream

NAMES = [check.name for check in CHECKS]
SHORTER = {"auto-heg": {"layers": 2, "search_epochs": 1}}  # every model the battery makes begins with a search


@pytest.mark.parametrize("name", systems())
def test_every_system_passes(name):
    """Exceptions are listed in the registry, with the reason; everything else passes."""
    results = check_node_classifier(name, settings=quick(find(name).settings).with_settings(SHORTER.get(name, {})))
    assert [result.name for result in results] == NAMES
    left_out = {result.name for result in results if result.status == "skipped"}
    assert left_out <= set(find(name).exceptions), results


def test_the_battery_is_whole():
    assert len(NAMES) == len(set(NAMES)) >= 40
    for check in CHECKS:
        assert set(check.needs) <= set(NAMES[: NAMES.index(check.name)]), f"{check.name} must come after what it needs"


class Sound(PlainNetwork):
    """A small GCN; each class below spoils one thing."""

    def __init__(self, shape, seed):
        super().__init__(shape, Settings(hidden=16, dropout=0.2), seed, graph_layers=True)


class ReturnsNaN(Sound):
    def predict(self, graph, seed, samples=None):
        prediction = super().predict(graph, seed, samples)
        return Prediction.uniform(torch.full_like(prediction.log_prob, float("nan")))


class ReturnsLogits(Sound):
    @torch.no_grad()
    def predict(self, graph, seed, samples=None):
        self.eval()
        return Prediction.uniform(self.logits(graph, None).clamp(max=0.0).unsqueeze(0))


class RecordsGradients(Sound):
    def predict(self, graph, seed, samples=None):
        return Prediction.uniform(torch.log_softmax(self.logits(graph, None), -1).unsqueeze(0))


class TrainsOnTestLabels(Sound):
    def training_loss(self, graph, seed, epoch):
        seen = graph.train_mask | graph.test_mask
        return {"loss": nn.functional.cross_entropy(self.logits(graph, stream(seed, "d", epoch))[seen], graph.y[seen])}


class TrainsOnValidationLabels(Sound):
    def training_loss(self, graph, seed, epoch):
        seen = graph.train_mask | graph.val_mask
        return {"loss": nn.functional.cross_entropy(self.logits(graph, stream(seed, "d", epoch))[seen], graph.y[seen])}


class TrainsOnEveryOtherLabel(Sound):
    def training_loss(self, graph, seed, epoch):
        seen = ~(graph.val_mask | graph.test_mask) & (graph.y >= 0)
        return {"loss": nn.functional.cross_entropy(self.logits(graph, stream(seed, "d", epoch))[seen], graph.y[seen])}


class ReadsLabelsAtPrediction(Sound):
    def predict(self, graph, seed, samples=None):
        shown = nn.functional.one_hot(graph.y.clamp(min=0), graph.num_classes).float() * graph.test_mask.unsqueeze(1)
        log_prob = super().predict(graph, seed, samples).log_prob
        return Prediction.uniform(torch.log_softmax(log_prob + 3.0 * shown, -1))


class IgnoresTheSeed(Sound):
    def __init__(self, shape, seed):
        super().__init__(shape, 7)

    def training_loss(self, graph, seed, epoch):
        return super().training_loss(graph, 7, epoch)


class DrawsFromGlobalState(Sound):
    def logits(self, graph, generator):
        return super().logits(graph, None if generator is None else torch.default_generator)


class SeedsGlobalState(Sound):
    def training_loss(self, graph, seed, epoch):
        torch.manual_seed(seed)
        return super().training_loss(graph, seed, epoch)


class HasADeadParameter(Sound):
    def __init__(self, shape, seed):
        super().__init__(shape, seed)
        self.unused = nn.Parameter(torch.ones(3))


class ForgetsAParameter(Sound):
    def parameter_groups(self, weight_decay):
        groups = super().parameter_groups(weight_decay)
        groups[1]["params"] = groups[1]["params"][1:]
        return groups


class PredictsOtherwiseEachTime(Sound):
    calls = 0

    def predict(self, graph, seed, samples=None):
        self.calls += 1
        log_prob = super().predict(graph, seed, samples).log_prob
        noise = torch.rand(log_prob.shape, generator=stream(self.calls, "noise"))
        return Prediction.uniform(torch.log_softmax(log_prob + 0.01 * noise, -1))


class CountsPredictions(Sound):
    def __init__(self, shape, seed):
        super().__init__(shape, seed)
        self.register_buffer("count", torch.zeros(()))

    def training_loss(self, graph, seed, epoch):
        self.count.zero_()
        return super().training_loss(graph, seed, epoch)

    def predict(self, graph, seed, samples=None):
        self.count += 1
        return super().predict(graph, seed, samples)


class WritesIntoTheGraph(Sound):
    def predict(self, graph, seed, samples=None):
        prediction = super().predict(graph, seed, samples)
        graph.y[graph.test_mask] = prediction.label[graph.test_mask]
        return prediction


class NeedsTheEvalFlag(Sound):
    @torch.no_grad()
    def predict(self, graph, seed, samples=None):
        log_prob = torch.log_softmax((1.5 if self.training else 1.0) * self.logits(graph, None), -1)
        return Prediction.uniform(log_prob.unsqueeze(0))

    def training_loss(self, graph, seed, epoch):
        parts = super().training_loss(graph, seed, epoch)
        self.eval()
        return parts


class KnowsThePlaceOfANode(Sound):
    def logits(self, graph, generator):
        place = torch.arange(graph.num_nodes).unsqueeze(1) % 2
        return super().logits(graph, generator) + 0.1 * place * torch.arange(graph.num_classes)


class ReadsTheRawTable(Sound):
    def logits(self, graph, generator):
        hidden = torch.relu(dropout(graph.x.view(graph.x.shape), 0.2, generator) @ self.stack.layers[0].weight)
        return super().logits(graph, generator) + 0.0 * hidden.sum()


class LearnsOutsideItsWeights(Sound):
    """Class shares of the training set, kept in a plain attribute: lost when the weights travel alone."""

    shift = torch.zeros(())

    def begin(self, graph, seed):
        super().begin(graph, seed)
        self.shift = torch.bincount(graph.y[graph.train_mask], minlength=graph.num_classes).float() / graph.num_nodes

    def logits(self, graph, generator):
        return super().logits(graph, generator) + self.shift * torch.arange(graph.num_classes)


class SwallowsNaN(Sound):
    def logits(self, graph, generator):
        return torch.nan_to_num(super().logits(graph, generator)) + 0.0 * torch.nan_to_num(self.stack.layers[0].weight.sum())

    def training_loss(self, graph, seed, epoch):
        parts = super().training_loss(graph, seed, epoch)
        for parameter in self.parameters():
            parameter.register_hook(torch.nan_to_num)
        return parts


class NeedsEdges(Sound):
    def logits(self, graph, generator):
        return super().logits(graph, generator) + 0.0 * graph.edge_index.max()


class SeesNoEdges(Sound):
    def __init__(self, shape, seed):
        super().__init__(shape, seed)
        self.graph_layers = False


class LearnsNothing(Sound):
    def training_loss(self, graph, seed, epoch):
        parts = super().training_loss(graph, seed, epoch)
        return {"loss": -0.01 * parts["loss"]}


BROKEN = {
    ReturnsNaN: "probabilities_are_finite",
    ReturnsLogits: "probabilities_sum_to_one",
    RecordsGradients: "prediction_has_no_gradient",
    TrainsOnTestLabels: "test_labels_do_not_leak",
    TrainsOnValidationLabels: "validation_labels_do_not_leak",
    TrainsOnEveryOtherLabel: "other_labels_do_not_leak",
    ReadsLabelsAtPrediction: "prediction_ignores_held_out_labels",
    IgnoresTheSeed: "other_seed_other_weights",
    DrawsFromGlobalState: "same_seed_same_weights",
    SeedsGlobalState: "global_random_state_is_left_alone",
    HasADeadParameter: "every_parameter_gets_a_gradient",
    ForgetsAParameter: "parameter_groups_cover_everything_once",
    PredictsOtherwiseEachTime: "prediction_repeats",
    CountsPredictions: "prediction_leaves_weights_alone",
    WritesIntoTheGraph: "prediction_leaves_graph_alone",
    NeedsTheEvalFlag: "prediction_ignores_train_flag",
    KnowsThePlaceOfANode: "node_order_does_not_matter",
    ReadsTheRawTable: "sparse_features_equal_dense_ones",
    LearnsOutsideItsWeights: "save_and_load",
    SwallowsNaN: "nan_weights_stop_training",
    NeedsEdges: "survives_no_edges",
    SeesNoEdges: "learns_from_structure",
    LearnsNothing: "learns_an_easy_graph",
}


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # of the one that records gradients
@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_model_fails_exactly_its_check(broken):
    results = check_node_classifier(broken, on_fail="report")
    assert [result.name for result in results if result.status == "failed"] == [BROKEN[broken]], [
        result for result in results if result.status != "passed"
    ]


def test_a_sound_model_and_a_stranger_pass():
    """The model behind the broken ones, and a PyG module as people write them."""
    assert all(result.status == "passed" for result in check_node_classifier(Sound))

    def sage(shape, seed):
        return GraphSAGE(shape.num_features, 16, 2, shape.num_classes, dropout=0.5)

    assert all(result.status == "passed" for result in check_node_classifier(sage))


def test_failures_raise_with_every_reason_and_exceptions_excuse():
    with pytest.raises(CheckFailed, match="every_parameter_gets_a_gradient: no gradient reaches unused"):
        check_node_classifier(HasADeadParameter, only=["every_parameter_gets_a_gradient"])
    results = check_node_classifier(
        HasADeadParameter, only=["every_parameter_gets_a_gradient"], exceptions={"every_parameter_gets_a_gradient": "by design"}
    )
    assert results[-1] == ("every_parameter_gets_a_gradient", "skipped", "exception: by design")
    with pytest.raises(BadInput, match="did you mean 'save_and_load'"):
        check_node_classifier("gcn", only=["save_and_lod"])
    with pytest.raises(BadInput, match="found int"):
        check_node_classifier(3)
    with pytest.raises(BadInput, match="returned str"):
        check_node_classifier(lambda shape, seed: "model")
