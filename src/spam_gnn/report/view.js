// The picture of a neighbourhood: signed edges, classed nodes, a legend for the classes in sight.

// Muted, distinguishable with any colour vision, and none near the blue and orange of the edges.
const CLASS_COLOURS = ["#44aa99", "#cc6677", "#ddcc77", "#aa4499", "#999933", "#882255", "#117733", "#b7a2d8"];

function classColour(index) {
  if (index < 0) return "#b8bcc2";
  if (index < CLASS_COLOURS.length) return CLASS_COLOURS[index];
  return `hsl(${Math.round(index * 137.508) % 360} 38% ${index % 2 ? 42 : 68}%)`;
}

function inkOn(index) {
  const dark = index < CLASS_COLOURS.length ? [3, 5, 6].includes(index) : index % 2 === 1;
  return dark ? "#ffffff" : "#14171b";
}

// The line from dot to dot, stopping short of both; bent where the opposite direction is drawn too.
function linkPath(from, to, fromRadius, toRadius, bend) {
  const dx = to.x - from.x, dy = to.y - from.y;
  const length = Math.hypot(dx, dy) || 1;
  const ux = dx / length, uy = dy / length;
  const x1 = from.x + ux * fromRadius, y1 = from.y + uy * fromRadius;
  const x2 = to.x - ux * toRadius, y2 = to.y - uy * toRadius;
  const cx = (x1 + x2) / 2 - uy * bend, cy = (y1 + y2) / 2 + ux * bend;
  const f = (v) => v.toFixed(1);
  return bend ? `M${f(x1)} ${f(y1)}Q${f(cx)} ${f(cy)} ${f(x2)} ${f(y2)}` : `M${f(x1)} ${f(y1)}L${f(x2)} ${f(y2)}`;
}

function arrowHead(word, distance, size) {
  const shape = { viewBox: "0 0 10 10", refX: 9, refY: 5, orient: "auto", markerUnits: "userSpaceOnUse" };
  const marker = { id: `arrow-${word}-${distance}`, markerWidth: size, markerHeight: size, ...shape };
  return drawn("marker", marker, drawn("path", { class: `arrow ${word}`, d: "M0 0L10 5L0 10Z" }));
}

function arrowHeads() {
  const words = Object.values(VERDICT);
  const near = words.map((word) => arrowHead(word, "near", 11));
  return drawn("defs", {}, ...near, ...words.map((word) => arrowHead(word, "far", 7)));
}

function drawLink(graph, edge, centre, spots, radius, pairs) {
  const source = graph.edges.source[edge], target = graph.edges.target[edge];
  const word = VERDICT[graph.edges.verdict[edge]];
  const sure = graph.edges[word][edge] ?? 0;
  // Edges between neighbours are background: the chosen node's own edges must stay readable.
  const far = source !== centre && target !== centre;
  const width = (word === "noise" ? 2 : 1) + 4 * sure * sure;
  const bend = graph.directed && pairs.has(`${target} ${source}`) ? 14 : 0;
  const end = radius(target) + (graph.directed ? 4 : 0);
  const line = drawn("path", {
    class: `edge ${word}`,
    d: linkPath(spots.get(source), spots.get(target), radius(source), end, bend),
    "stroke-width": (far ? 0.5 * width : width).toFixed(2),
    opacity: ((far ? 0.45 : 1) * (0.4 + 0.6 * sure)).toFixed(2),
  });
  if (graph.directed) line.setAttribute("marker-end", `url(#arrow-${word}-${far ? "far" : "near"})`);
  const title = drawn("title", {}, describe(graph, edge));
  return drawn("g", { class: "link", "data-source": source, "data-target": target }, title, line);
}

// Shortened in the middle: names often differ only at the end.
function shortName(name, most) {
  const letters = [...name];
  if (letters.length <= most) return name;
  const end = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

// The name stands outside the dot, away from the centre.
function nameTag(name, spot, radius, isCentre, isNarrow) {
  const gap = radius + 7;
  const across = Math.cos(spot.angle), down = Math.sin(spot.angle);
  const beside = !isCentre && !isNarrow && Math.abs(across) > 0.35;
  const x = spot.x + (beside ? Math.sign(across) * gap : 0);
  const y = beside ? spot.y + 4 : spot.y + (isCentre || down > 0 ? gap + 11 : -gap - 3);
  const anchor = beside ? (across > 0 ? "start" : "end") : "middle";
  const at = { x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor };
  return drawn("text", { class: "name", ...at }, shortName(name, isNarrow ? 11 : 16));
}

function drawVertex(graph, node, spot, radius, isCentre, isBare, isNarrow) {
  const nodes = graph.nodes, kind = nodes.prediction[node];
  const wrong = isWrong(graph, node);
  const said = `${nodes.name[node]}: predicted ${className(graph, kind)}` +
    (nodes.label[node] >= 0 ? `, label ${className(graph, nodes.label[node])}` : ", label unknown");
  const group = drawn("g", {
    class: `vertex${isCentre ? " centre" : ""}${isBare ? " bare" : ""}${wrong ? " wrong" : ""}`,
    role: "button", tabindex: "0", "data-node": node, "aria-label": said,
  }, drawn("title", {}, said));
  const at = { cx: spot.x.toFixed(1), cy: spot.y.toFixed(1) };
  if (wrong) group.append(drawn("circle", { class: "ring", ...at, r: radius + 4 }));
  group.append(drawn("circle", { class: "dot", ...at, r: radius, fill: classColour(kind) }));
  const below = (spot.y + 3.5).toFixed(1);
  group.append(drawn("text", { class: "code", x: at.cx, y: below, fill: inkOn(kind) }, String(kind)));
  group.append(nameTag(nodes.name[node], spot, radius + (wrong ? 4 : 0), isCentre, isNarrow));
  return group;
}

// Redraws everything; `isShown` is the filter, which hides edges but moves no node.
function drawView(svg, graph, view, isShown) {
  const width = Math.max(300, Math.round(svg.parentElement.clientWidth - 28));
  const height = view.hop.size === 1 ? 200 : Math.round(Math.min(560, Math.max(340, width * 0.82)));
  const spots = place(graph, view, width, height);
  const small = view.hop.size > 45;
  const radius = (node) => (node === view.centre ? 16 : small ? 9 : 11);
  const visible = view.edges.filter(isShown);
  const pairs = new Set(visible.map((edge) => `${graph.edges.source[edge]} ${graph.edges.target[edge]}`));
  const touched = new Set(visible.flatMap((edge) => [graph.edges.source[edge], graph.edges.target[edge]]));
  const links = visible.map((edge) => drawLink(graph, edge, view.centre, spots, radius, pairs));
  const vertices = [...view.hop.keys()].map((node) => {
    const isCentre = node === view.centre;
    const isBare = !isCentre && !touched.has(node);
    return drawVertex(graph, node, spots.get(node), radius(node), isCentre, isBare, width < NARROW);
  });
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", view.hop.size > (width < NARROW ? 14 : 34) ? "crowded" : "");
  svg.setAttribute("aria-label", `Neighbourhood of ${graph.nodes.name[view.centre]}: ${visible.length} edges`);
  svg.replaceChildren(arrowHeads(), drawn("g", {}, ...links), drawn("g", {}, ...vertices));
  return visible;
}

// Pointing at a node brings its edges forward.
function light(svg, node) {
  svg.classList.toggle("lit-view", node !== null);
  for (const link of svg.querySelectorAll(".link")) {
    link.classList.toggle("lit", link.dataset.source === node || link.dataset.target === node);
  }
}

function fillLegend(list, graph, view) {
  const kinds = [...new Set([...view.hop.keys()].map((node) => graph.nodes.prediction[node]))].sort((a, b) => a - b);
  const items = kinds.map((kind) => {
    const dot = element("span", { class: "dot", "aria-hidden": "true" }, String(kind));
    dot.style.background = classColour(kind);
    dot.style.color = inkOn(kind);
    return element("li", {}, dot, element("bdi", { title: className(graph, kind) }, className(graph, kind)));
  });
  if ([...view.hop.keys()].some((node) => isWrong(graph, node))) {
    const ring = element("span", { class: "dot ring", "aria-hidden": "true" });
    items.push(element("li", {}, ring, "known label disagrees"));
  }
  list.replaceChildren(...items);
}
