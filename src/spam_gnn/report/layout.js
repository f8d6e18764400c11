// Which nodes and edges a neighbourhood view shows, and where each node stands. Same input, same picture.

const VERDICT = { 1: "helps", 0: "noise", "-1": "opposes" };
const MOST_NEIGHBOURS = 40;
const MOST_NODES = 90;
// Narrower pictures write names under the dots instead of beside them.
const NARROW = 480;

// One list of edge indices per node; both ends of an edge know it.
function buildAdjacency(graph) {
  const adjacency = graph.nodes.name.map(() => []);
  graph.edges.source.forEach((source, edge) => {
    adjacency[source].push(edge);
    if (graph.edges.target[edge] !== source) adjacency[graph.edges.target[edge]].push(edge);
  });
  return adjacency;
}

function otherEnd(graph, edge, node) {
  return graph.edges.source[edge] === node ? graph.edges.target[edge] : graph.edges.source[edge];
}

// How much an edge deserves a look: the probability that it does not simply help.
function concern(graph, edge) {
  return (graph.edges.opposes[edge] ?? 0) + (graph.edges.noise[edge] ?? 0);
}

function byConcern(graph, edges) {
  return [...edges].sort((a, b) => concern(graph, b) - concern(graph, a) || a - b);
}

// Breadth-first to one or two hops. `children` is the tree the radial layout follows.
function collect(graph, adjacency, centre, hops) {
  const hop = new Map([[centre, 0]]);
  const children = new Map([[centre, []]]);
  let left = 0;
  const visit = (node, most) => {
    for (const edge of byConcern(graph, adjacency[node])) {
      const other = otherEnd(graph, edge, node);
      if (hop.has(other)) continue;
      if (children.get(node).length >= most || hop.size >= MOST_NODES) {
        left += 1;
        continue;
      }
      hop.set(other, hop.get(node) + 1);
      children.set(other, []);
      children.get(node).push({ node: other, edge });
    }
  };
  visit(centre, MOST_NEIGHBOURS);
  if (hops > 1) for (const child of [...children.get(centre)]) visit(child.node, 12);
  const edges = new Set();
  for (const node of hop.keys()) {
    for (const edge of adjacency[node]) if (hop.has(otherEnd(graph, edge, node))) edges.add(edge);
  }
  return { centre, hop, children, edges: [...edges].sort((a, b) => a - b), left };
}

// Neighbours around the circle by verdict, then by probability: like edges stand together.
function ringOrder(graph, children) {
  const rank = { 1: 0, 0: 1, "-1": 2 };
  const key = (edge) => rank[graph.edges.verdict[edge]];
  const sure = (edge) => graph.edges[VERDICT[graph.edges.verdict[edge]]][edge] ?? 0;
  return [...children].sort((a, b) => key(a.edge) - key(b.edge) || sure(b.edge) - sure(a.edge) || a.node - b.node);
}

// A radial tree on an ellipse; each neighbour's sector is as wide as the number of nodes behind it.
function place(graph, view, width, height) {
  const middle = { x: width / 2, y: height / 2, angle: Math.PI / 2 };
  const spots = new Map([[view.centre, middle]]);
  const first = ringOrder(graph, view.children.get(view.centre));
  const weight = (child) => Math.max(1, view.children.get(child.node).length);
  const total = first.reduce((sum, child) => sum + weight(child), 0);
  const deep = [...view.hop.values()].some((distance) => distance === 2);
  const inset = { x: width < NARROW ? 40 : 118, y: 42 };
  const spread = (share, angle) => ({
    x: middle.x + Math.cos(angle) * (middle.x - inset.x) * share,
    y: middle.y + Math.sin(angle) * (middle.y - inset.y) * share,
    angle,
  });
  // Many neighbours stand on two circles in turn, so that their dots do not touch.
  const crowded = first.length > 18;
  let turned = 0;
  first.forEach((child, index) => {
    const sector = (2 * Math.PI * weight(child)) / total;
    // Turning starts below the centre, where no edge runs and its name has room.
    const angle = first.length === 1 ? 0 : Math.PI / 2 + turned + sector / 2;
    const near = deep ? 0.52 : 0.74;
    spots.set(child.node, spread(crowded && index % 2 ? near : deep ? 0.62 : 1, angle));
    const behind = ringOrder(graph, view.children.get(child.node));
    behind.forEach((grandchild, position) => {
      const step = Math.min(sector / behind.length, 0.5);
      spots.set(grandchild.node, spread(1, angle + step * (position - (behind.length - 1) / 2)));
    });
    turned += sector;
  });
  return spots;
}
