// Starts the page: errors are counted, tables sort, the epoch slider reads the curves, the explorer explores.

const root = document.documentElement;
root.dataset.errors = "0";
addEventListener("error", () => { root.dataset.errors = String(Number(root.dataset.errors) + 1); });

function setTheme(theme) {
  if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
  document.getElementById("theme").textContent = `Theme: ${theme}`;
}

function startTheme() {
  const button = document.getElementById("theme");
  const wanted = readHash().theme;
  setTheme(["light", "dark"].includes(wanted) ? wanted : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = { auto: "light", light: "dark", dark: "auto" };
    setTheme(next[root.dataset.theme ?? "auto"]);
  });
}

// A heading sorts its column, numbers first downwards; a second press turns the order round.
function sortBy(button) {
  const head = button.closest("th");
  const index = [...head.parentElement.children].indexOf(head);
  const words = !head.closest("table").querySelector("tbody tr")?.children[index].dataset.value;
  const [usual, other] = words ? ["ascending", "descending"] : ["descending", "ascending"];
  const order = head.getAttribute("aria-sort") === usual ? other : usual;
  for (const cell of head.parentElement.children) cell.setAttribute("aria-sort", cell === head ? order : "none");
  const turn = order === "ascending" ? 1 : -1;
  const body = head.closest("table").tBodies[0];
  const key = (row) => (words ? row.children[index].textContent : Number(row.children[index].dataset.value));
  const compare = (a, b) => (words ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
  body.append(...[...body.rows].sort((a, b) => turn * compare(key(a), key(b))));
}

function startCurves(history) {
  const slider = document.getElementById("epoch");
  if (!slider) return;
  const charts = [...document.querySelectorAll("svg.curve")];
  const show = () => {
    const index = Number(slider.value), epoch = history.epoch[index];
    document.getElementById("epoch-shown").textContent = epoch;
    slider.setAttribute("aria-valuetext", `epoch ${epoch}`);
    for (const output of document.querySelectorAll("output[data-series]")) {
      output.textContent = shown(history[output.dataset.series][index], 3);
    }
    for (const chart of charts) {
      const { left, right, first, last } = chart.dataset;
      const share = (epoch - first) / (last - first || 1);
      const cursor = chart.querySelector(".cursor");
      cursor.setAttribute("transform", `translate(${Number(left) + share * (right - left)} 0)`);
      cursor.setAttribute("visibility", "visible");
    }
  };
  slider.addEventListener("input", show);
  for (const chart of charts) {
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect(), { left, right, first, last } = chart.dataset;
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const wanted = Number(first) + ((x - left) / (right - left)) * (last - first);
      let nearest = 0;
      history.epoch.forEach((epoch, i) => {
        if (Math.abs(epoch - wanted) < Math.abs(history.epoch[nearest] - wanted)) nearest = i;
      });
      slider.value = nearest;
      show();
    });
  }
}

function noteOverflow() {
  const wide = root.scrollWidth > root.clientWidth + 1;
  if (wide) root.dataset.overflow = String(root.scrollWidth); else delete root.dataset.overflow;
}

const data = JSON.parse(document.getElementById("data").textContent);
startTheme();
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.sort");
  if (button) sortBy(button);
});
startCurves(data.history);
if (data.start >= 0) new Explorer(data);
noteOverflow();
addEventListener("resize", noteOverflow);
root.dataset.ready = "1";
