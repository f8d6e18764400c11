// The explorer: which node is chosen, by what means, and what is filtered out of its neighbourhood.

// "#node=NAME&theme=dark"; a stray percent sign is taken as written.
function readHash() {
  const found = {};
  for (const part of location.hash.slice(1).split("&")) {
    const [key, ...rest] = part.split("=");
    const raw = rest.join("=");
    try { found[key] = decodeURIComponent(raw); } catch { found[key] = raw; }
  }
  return found;
}

class Explorer {
  constructor(graph) {
    this.graph = graph;
    this.adjacency = buildAdjacency(graph);
    this.centre = graph.start;
    this.svg = document.getElementById("view");
    this.input = document.getElementById("node");
    this.threshold = document.getElementById("threshold");
    this.twoHops = document.getElementById("two-hops");
    this.status = document.getElementById("view-status");
    this.verdicts = [...document.querySelectorAll("[data-verdict]")];
    this.width = this.svg.parentElement.clientWidth;
    this.listenToControls();
    this.listenToPicture();
    this.input.value = graph.nodes.name[this.centre];
    this.redraw();
    this.followHash();
  }

  isShown(edge) {
    const verdict = this.graph.edges.verdict[edge];
    const sure = this.graph.edges[VERDICT[verdict]][edge] ?? 0;
    const wanted = this.verdicts.some((box) => box.checked && Number(box.dataset.verdict) === verdict);
    return wanted && sure >= Number(this.threshold.value);
  }

  redraw() {
    const { graph, adjacency, centre, svg } = this;
    const focused = svg.contains(document.activeElement);
    const isShown = (edge) => this.isShown(edge);
    const view = collect(graph, adjacency, centre, this.twoHops.checked ? 2 : 1);
    const visible = drawView(svg, graph, view, isShown);
    fillLegend(document.getElementById("view-legend"), graph, view);
    fillPanel(document.getElementById("panel"), graph, adjacency, centre, isShown);
    document.getElementById("threshold-shown").textContent = shown(Number(this.threshold.value));
    const left = view.left ? ` ${view.left} more links are not drawn; the ones to look at come first.` : "";
    const drawnEdges = `${visible.length} of ${view.edges.length} edges drawn among ${view.hop.size} nodes.`;
    this.status.textContent = view.edges.length ? drawnEdges + left : "No edge of this node is in this page.";
    // The dot that had the focus is gone; the keyboard goes on from the new centre.
    if (focused) svg.querySelector(".centre").focus();
  }

  choose(node) {
    this.centre = node;
    this.input.value = this.graph.nodes.name[node];
    location.hash = `node=${encodeURIComponent(this.graph.nodes.name[node])}`;
    this.redraw();
  }

  find(name) {
    const node = this.graph.nodes.name.indexOf(name);
    if (node >= 0) this.choose(node);
    else this.status.textContent = `No node of that name is in this page: ${name}`;
  }

  // Nodes may share a name: the address alone does not move away from the one that was chosen.
  followHash() {
    const { node } = readHash();
    if (node !== undefined && node !== this.graph.nodes.name[this.centre]) this.find(node);
  }

  suggest() {
    const wanted = this.input.value.toLowerCase();
    const near = this.graph.nodes.name.filter((name) => name.toLowerCase().includes(wanted)).slice(0, 30);
    const options = near.map((name) => element("option", { value: name }));
    document.getElementById("node-names").replaceChildren(...options);
  }

  listenToControls() {
    document.getElementById("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.find(this.input.value);
    });
    this.input.addEventListener("input", () => this.suggest());
    this.input.addEventListener("change", () => {
      if (this.graph.nodes.name.includes(this.input.value)) this.find(this.input.value);
    });
    for (const control of [this.threshold, this.twoHops, ...this.verdicts]) {
      control.addEventListener("input", () => this.redraw());
    }
    addEventListener("hashchange", () => this.followHash());
    addEventListener("resize", () => {
      const width = this.svg.parentElement.clientWidth;
      if (width !== this.width) { this.width = width; this.redraw(); }
    });
  }

  listenToPicture() {
    const pick = (event) => {
      const target = event.target.closest("[data-node]");
      if (!target) return;
      const inside = target.closest(".explorer");
      this.choose(Number(target.dataset.node));
      if (!inside) document.getElementById("neighbourhood").scrollIntoView({ block: "start" });
    };
    document.addEventListener("click", pick);
    this.svg.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(event); }
    });
    for (const kind of ["pointerover", "focusin"]) {
      this.svg.addEventListener(kind, (event) => {
        light(this.svg, event.target.closest(".vertex")?.dataset.node ?? null);
      });
    }
    for (const kind of ["pointerleave", "focusout"]) this.svg.addEventListener(kind, () => light(this.svg, null));
  }
}
