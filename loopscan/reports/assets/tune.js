"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const { curve, candidates, columns, marks } = data;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const percent = (value) => (value == null ? "–" : `${+(value * 100).toFixed(1)} %`);
  const plain = (value) => (value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 }));
  const units = {
    calls: { label: "calls", told: plain },
    tokens: { label: "tokens", told: plain },
    dollars: { label: "dollars", told: (value) => (value == null ? "–" : `$${value.toFixed(2)}`) },
    minutes: { label: "minutes", told: plain },
  };
  const short = (value) => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
  const worth = (value) => (unit === "dollars" ? `$${short(value)}` : short(value));
  const charts = [];
  let unit = "calls";
  let selected = data.start;

  const axis = (told, label) => ({
    stroke: color("dim"),
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    label,
    labelSize: label ? 18 : 0,
    size: label ? 34 : 56,
    grid: { stroke: color("line"), width: 0.5 },
    ticks: { stroke: color("line"), width: 0.5 },
    values: (_, values) => values.map((value) => (value == null ? "" : told(value))),
  });
  const line = (label, name, told, more = {}) => ({
    label,
    stroke: color(name),
    width: 2,
    points: { show: true, size: 6, fill: color(name) },
    value: (_, value) => told(value),
    ...more,
  });

  /* A line down at the thresholds that are in force and recommended. */
  const flags = (u) => {
    for (const [name, ink, text] of [["in_force", "dim", "in force"], ["recommended", "good", "recommended"]]) {
      const at = marks[name];
      if (at == null || at < u.scales.x.min || at > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(at, "x", true));
      const { ctx, bbox } = u;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = color(ink);
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash(name === "in_force" ? [4 * devicePixelRatio, 4 * devicePixelRatio] : []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      const right = x > bbox.left + bbox.width * 0.7;
      ctx.textAlign = right ? "right" : "left";
      ctx.textBaseline = "top";
      ctx.fillText(text, x + (right ? -4 : 4) * devicePixelRatio, bbox.top + (name === "in_force" ? 14 : 1) * devicePixelRatio);
      ctx.restore();
    }
  };

  const draw = (id, options, values) => {
    const place = byId(id);
    place.replaceChildren();
    const paper = document.documentElement.classList.contains("paper");
    const width = paper ? (id === "front" ? 620 : 300) : Math.max(200, place.clientWidth);
    const chart = new uPlot({ width, height: Math.min(260, Math.max(190, width * 0.55)), ...options }, values, place);
    charts.push([place, chart]);
    return chart;
  };
  const pad = (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1];
  const against = (id, series, values, told, more = {}) =>
    draw(
      id,
      {
        scales: { x: { time: false }, y: { range: pad } },
        axes: [axis(plain, "critical threshold"), axis(told)],
        series: [{ label: "critical", value: (_, value) => plain(value) }, ...series],
        cursor: { y: false, sync: { key: "critical" } },
        hooks: { draw: [flags] },
        ...more,
      },
      [curve.critical, ...values],
    );

  const savings = () => against("saved", [line(`${units[unit].label} saved`, "good", units[unit].told)], [curve.saved[unit]], worth);

  const front = () => {
    const order = candidates.map((_, at) => at).filter((at) => candidates[at].rate != null);
    order.sort((one, other) => candidates[one].rate - candidates[other].rate || candidates[one].saved[unit] - candidates[other].saved[unit]);
    if (!order.length) {
      byId("front").textContent = "No session is at risk: there is no false-block rate.";
      return;
    }
    const rates = order.map((at) => candidates[at].rate);
    const only = (wanted) => order.map((at) => (wanted(at) ? candidates[at].saved[unit] : null));
    const dots = (label, name, size) =>
      line(label, name, units[unit].told, { paths: () => null, points: { show: true, size, fill: color(name) } });
    const nearest = (u, series, index) => {
      const { left, top } = u.cursor;
      if (left == null || left < 0) return index;
      let best = index;
      let least = Infinity;
      for (let at = 0; at < order.length; at++) {
        const value = u.data[series][at];
        if (value == null) continue;
        const distance = (u.valToPos(rates[at], "x") - left) ** 2 + (u.valToPos(value, "y") - top) ** 2;
        if (distance < least) [least, best] = [distance, at];
      }
      return least < Infinity ? best : index;
    };
    const chart = draw(
      "front",
      {
        scales: { x: { time: false, range: (_, low, high) => [0, high > 0 ? high * 1.05 : 0.05] }, y: { range: pad } },
        axes: [axis(percent, "false-block rate"), axis(worth)],
        series: [
          { label: "rate", value: (_, value) => percent(value) },
          dots("settings", "dim", 5),
          line("front", "main", units[unit].told, { spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }) }),
          dots("in force", "other", 9),
          dots("recommended", "good", 11),
        ],
        cursor: { dataIdx: nearest, drag: { x: false, y: false } },
        hooks: {
          draw: [
            (u) => {
              const chosen = candidates[selected];
              if (chosen.rate == null) return;
              u.ctx.save();
              u.ctx.strokeStyle = color("text");
              u.ctx.lineWidth = 2 * devicePixelRatio;
              u.ctx.beginPath();
              u.ctx.arc(u.valToPos(chosen.rate, "x", true), u.valToPos(chosen.saved[unit], "y", true), 8 * devicePixelRatio, 0, 7);
              u.ctx.stroke();
              u.ctx.restore();
            },
          ],
          setLegend: [
            (u) => {
              const index = u.legend.idxs?.[1];
              const under = index == null ? null : candidates[order[index]];
              byId("under").textContent = under ? under.setting : "Point at a setting; click it to see its figures.";
            },
          ],
        },
      },
      [rates, only(() => true), only((at) => candidates[at].front), only((at) => at === data.in_force), only((at) => at === data.recommended)],
    );
    chart.over.addEventListener("click", () => {
      const index = chart.legend.idxs?.[1];
      if (index != null) select(order[index]);
    });
  };

  const paint = () => {
    for (const [, chart] of charts.splice(0)) chart.destroy();
    if (curve.critical.length) {
      against(
        "rate",
        [
          line("at most", "bad", percent, { width: 0, points: { show: false } }),
          line("at least", "bad", percent, { width: 0, points: { show: false } }),
          line("false-block rate", "bad", percent),
        ],
        [curve.high, curve.low, curve.rate],
        percent,
        { bands: [{ series: [1, 2], fill: color("band") }] },
      );
      against("caught", [line("stuck caught", "main", plain), line("missed", "dim", plain)], [curve.caught, curve.missed], short);
      savings();
      against("warnings", [line("warnings per 1,000 calls", "other", plain)], [curve.warnings], short);
    }
    front();
  };

  const select = (at) => {
    selected = at;
    const chosen = candidates[at];
    byId("slider").value = at;
    byId("which").textContent = chosen.setting;
    byId("roles").textContent = chosen.roles;
    byId("tiles").replaceChildren(
      ...columns.map((column, place) => {
        const tile = document.createElement("div");
        const [head, figure] = [document.createElement("dt"), document.createElement("dd")];
        tile.className = column.saved ? "saved" : "";
        tile.title = column.about;
        head.textContent = column.saved ? `${column.head} saved, at most` : column.head;
        figure.textContent = chosen.cells[place];
        tile.append(head, figure);
        return tile;
      }),
    );
    for (const [place, chart] of charts) if (place.id === "front") chart.redraw(false);
  };

  for (const part of document.querySelectorAll(".live")) part.hidden = false;
  if (!curve.critical.length) byId("curves").hidden = true;
  const slider = byId("slider");
  if (candidates.length) {
    slider.max = candidates.length - 1;
    slider.addEventListener("input", () => select(+slider.value));
    paint();
    select(selected);
  } else {
    byId("choosing").hidden = true;
  }
  byId("unit").addEventListener("change", (event) => {
    unit = event.target.value;
    paint();
  });
  byId("copy")?.addEventListener("click", async (event) => {
    const block = byId("block");
    try {
      await navigator.clipboard.writeText(block.textContent);
      event.target.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(block);
      event.target.textContent = "selected: copy it";
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width || !candidates.length) return;
    width = innerWidth;
    paint();
  });
  const repaint = () => candidates.length && paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  const paper = (on) => () => {
    document.documentElement.classList.toggle("paper", on);
    repaint();
  };
  addEventListener("beforeprint", paper(true));
  addEventListener("afterprint", paper(false));
})();
