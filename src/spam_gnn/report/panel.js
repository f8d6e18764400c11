// Small DOM builders and the panel beside the picture. Names only ever enter as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const DASH = "–";
const MARK = { helps: "+", noise: "0", opposes: "−" };

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function shown(value, digits = 2) {
  if (value === null || value === undefined) return DASH;
  const small = digits > 2 && value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  return (small ? value.toExponential(1) : value.toFixed(digits)).replaceAll("-", "−");
}

function className(graph, index) {
  return graph.classes[index] ?? DASH;
}

function isWrong(graph, node) {
  return graph.nodes.label[node] >= 0 && graph.nodes.label[node] !== graph.nodes.prediction[node];
}

function nodeButton(graph, node) {
  const name = graph.nodes.name[node];
  return element("button", { type: "button", class: "node", "data-node": node, title: name }, element("bdi", {}, name));
}

function probabilityCell(value, word, verdict) {
  const bar = element("span", { class: `bar ${word}`, "aria-hidden": "true" });
  bar.style.setProperty("--p", value ?? 0);
  const kind = verdict === word ? "p verdict" : "p";
  return element("td", { class: kind, "data-value": value ?? -1 }, shown(value), bar);
}

function describe(graph, edge) {
  const link = graph.directed ? "→" : "–";
  const { source, target, helps, noise, opposes } = graph.edges;
  const names = `${graph.nodes.name[source[edge]]} ${link} ${graph.nodes.name[target[edge]]}`;
  return `${names}: helps ${shown(helps[edge])}, noise ${shown(noise[edge])}, opposes ${shown(opposes[edge])}`;
}

function nodeFacts(graph, node, stored) {
  const { confidence, total, structural, degree, prediction, label } = graph.nodes;
  const sure = confidence[node] === null ? DASH : `${shown(100 * confidence[node], 0)}%`;
  const facts = [
    ["predicted", `${className(graph, prediction[node])} (${sure})`],
    ["known label", `${className(graph, label[node])}${isWrong(graph, node) ? " ✗ disagrees" : ""}`],
    ["doubt in all", `${shown(total[node], 3)} nats`],
    ["of it from the edges", `${shown(structural[node], 3)} nats`],
  ];
  const list = element("dl", { class: "facts" });
  for (const [term, said] of facts) {
    list.append(element("div", {}, element("dt", {}, term), element("dd", {}, element("bdi", {}, said))));
  }
  if (stored < degree[node]) {
    const said = `${stored} of its ${degree[node]} edges are in this page`;
    list.append(element("div", { class: "wide" }, element("dt", {}, "excerpt"), element("dd", {}, said)));
  }
  return list;
}

function neighbourRow(graph, node, edge, isShown) {
  const verdict = VERDICT[graph.edges.verdict[edge]];
  const other = otherEnd(graph, edge, node);
  const head = element("th", { scope: "row", class: "pair" });
  head.append(element("span", { class: `mark ${verdict}`, title: verdict }, MARK[verdict]), " ");
  if (graph.directed) {
    const leaves = graph.edges.source[edge] === node;
    head.append(element("span", { class: "to", title: leaves ? "to" : "from" }, leaves ? "→ " : "← "));
  }
  head.append(nodeButton(graph, other));
  const row = element("tr", { "data-node": other, "data-edge": edge }, head);
  for (const word of ["helps", "noise", "opposes"]) row.append(probabilityCell(graph.edges[word][edge], word, verdict));
  if (graph.edges.truth) {
    const truth = VERDICT[graph.edges.truth[edge]];
    const word = element("span", { class: "spoken" }, truth);
    const sign = truth === verdict ? " ✓" : " ✗";
    row.append(element("td", { class: "truth", "data-value": graph.edges.truth[edge] }, `${MARK[truth]} `, word, sign));
  }
  row.hidden = !isShown;
  return row;
}

// The chosen node's facts and every stored edge at it, those to look at first on top.
function fillPanel(panel, graph, adjacency, node, isShown) {
  const edges = byConcern(graph, adjacency[node]);
  const title = element("h3", {}, element("bdi", {}, graph.nodes.name[node]));
  panel.replaceChildren(title, nodeFacts(graph, node, edges.length));
  if (edges.length === 0) {
    panel.append(element("p", { class: "empty" }, "No edge of this node is in this page."));
    return;
  }
  const heads = element("tr");
  const titles = ["Neighbour", "helps", "noise", "opposes", ...(graph.edges.truth ? ["truth"] : [])];
  titles.forEach((label, index) => {
    const button = element("button", { type: "button", class: "sort" }, label);
    heads.append(element("th", { scope: "col", class: index % 4 ? "" : "text", "aria-sort": "none" }, button));
  });
  const body = element("tbody");
  for (const edge of edges) body.append(neighbourRow(graph, node, edge, isShown(edge)));
  const table = element("table", { class: "sortable", id: "neighbours" }, element("thead", {}, heads), body);
  const label = `Neighbours of ${graph.nodes.name[node]}`;
  panel.append(element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, table));
}
