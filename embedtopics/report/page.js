"use strict";
(() => {
  const narrow = window.matchMedia("(max-width: 760px)").matches;
  const canvas = document.createElement("canvas");
  const hasWebGL = Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));

  // On a narrow screen the map shrinks and its labels do not: later ones give way to earlier.
  const thinLabels = (holder) => {
    const kept = [];
    for (const label of holder.querySelectorAll(".annotation")) {
      label.style.visibility = "";
      const box = label.getBoundingClientRect();
      const covered = kept.some((other) =>
        box.left < other.right && other.left < box.right &&
        box.top < other.bottom && other.top < box.bottom);
      if (covered) label.style.visibility = "hidden";
      else kept.push(box);
    }
  };

  for (const holder of document.querySelectorAll("[data-figure]")) {
    const figure = JSON.parse(document.getElementById(holder.dataset.figure).textContent);
    const isMap = holder.dataset.figure === "map-figure";
    if (!hasWebGL) {
      for (const trace of figure.data) if (trace.type === "scattergl") trace.type = "scatter";
    }
    if (isMap && narrow) {
      figure.layout.showlegend = false;
      figure.layout.height = 460;
    }
    if (!isMap && narrow) figure.layout.yaxis.tickfont = { size: 10 };
    const config = {
      responsive: true,
      displaylogo: false,
      displayModeBar: isMap ? "hover" : false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    };
    Plotly.newPlot(holder, figure.data, figure.layout, config).then(() => {
      if (!isMap) return;
      thinLabels(holder);
      holder.on("plotly_afterplot", () => thinLabels(holder));
    });
  }
})();
