// Pages about a class work without this; it keeps them current, filters tables and walks through heat maps by keyboard.
"use strict";
(() => {
  const POLL_MILLISECONDS = 5000;
  const LONGEST_MILLISECONDS = 60000;

  // -- keyboard in heat maps: one cell is in the tab order, arrows move, Enter opens the row ----------------------------

  const meanings = (table) =>
    Object.fromEntries(
      [...table.closest("figure").querySelectorAll("[data-mark]")].map((item) => [
        item.dataset.mark,
        item.lastChild.textContent,
      ]),
    );

  const walk = (table) => {
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
    const heads = [...table.tHead.rows[0].cells].slice(1);
    const says = table.closest("figure").querySelector(".heat-says");
    const words = meanings(table);
    if (!rows.length || !heads.length) return;
    table.setAttribute("role", "grid");
    let here = rows[0][0];
    here.tabIndex = 0;
    const tell = (cell) => {
      const row = cell.parentElement.cells[0];
      const head = heads[cell.cellIndex - 1];
      says.textContent = `${row.textContent}, ${head.textContent}: ${words[cell.textContent] ?? cell.textContent}`;
    };
    const go = (y, x) => {
      const cell = rows[Math.max(0, Math.min(rows.length - 1, y))][Math.max(0, Math.min(heads.length - 1, x))];
      here.tabIndex = -1;
      here = cell;
      here.tabIndex = 0;
      here.focus();
    };
    table.addEventListener("focusin", (event) => {
      if (event.target.tagName === "TD") tell(event.target);
    });
    table.addEventListener("mouseover", (event) => {
      if (event.target.tagName === "TD") tell(event.target);
    });
    table.addEventListener("click", (event) => {
      if (event.target.tagName === "TD") go(event.target.parentElement.rowIndex - 1, event.target.cellIndex - 1);
    });
    table.addEventListener("keydown", (event) => {
      if (event.target !== here || event.altKey || event.metaKey) return;
      const y = here.parentElement.rowIndex - 1;
      const x = here.cellIndex - 1;
      const moves = {
        ArrowUp: [y - 1, x],
        ArrowDown: [y + 1, x],
        ArrowLeft: [y, x - 1],
        ArrowRight: [y, x + 1],
        Home: [event.ctrlKey ? 0 : y, 0],
        End: [event.ctrlKey ? rows.length - 1 : y, heads.length - 1],
        PageUp: [y - 10, x],
        PageDown: [y + 10, x],
      };
      if (moves[event.key]) {
        event.preventDefault();
        go(...moves[event.key]);
      } else if (event.key === "Enter") {
        const link = here.parentElement.cells[0].querySelector("a") ?? heads[x].querySelector("a");
        if (link) link.click();
      }
    });
  };

  // -- a box above long tables that hides the rows without its words; `/` leads to the first box of the page ------------

  const filtered = (table, number) => {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 8) return;
    const label = document.createElement("label");
    label.className = "find";
    const input = document.createElement("input");
    input.type = "search";
    input.id = `find-${number}`;
    input.placeholder = "/";
    const count = document.createElement("span");
    count.className = "faint";
    count.setAttribute("role", "status");
    label.append("Only rows with ", input, " ", count);
    (table.closest(".scroll") ?? table).before(label);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = wanted.length ? `${shown} of ${rows.length}` : "";
    });
  };

  const ready = (part) => {
    part.querySelectorAll("table.heat").forEach(walk);
    part.querySelectorAll("table[data-filter]").forEach(filtered);
  };

  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
    if (event.key === "Escape" && typing && event.target.type === "search") event.target.blur();
    if (event.key !== "/" || typing || event.ctrlKey || event.altKey || event.metaKey) return;
    const box = document.querySelector("main input[type=search]") ?? document.querySelector("main form.filters input");
    if (box) {
      event.preventDefault();
      box.focus();
    }
  });

  // A link to a line of a file, or to something in it, opens what holds it.
  const open = () => {
    const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    for (let around = target?.closest("details"); around; around = around.parentElement.closest("details")) {
      around.open = true;
    }
    if (target?.closest("details")) target.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", open);

  // -- live: the part of the page that moves is asked for again, and taken over when it has changed ---------------------

  const busy = (part) => {
    const focus = document.activeElement;
    const typing = part.contains(focus) && (/^(INPUT|SELECT|TEXTAREA)$/.test(focus.tagName) || focus.tagName === "TD");
    return typing || [...part.querySelectorAll("input[type=search]")].some((box) => box.value);
  };

  const opened = (part) => [...part.querySelectorAll("details")].map((each) => each.open);

  const refresh = async (state) => {
    const headers = state.mark ? { "If-None-Match": state.mark } : {};
    const answer = await fetch(location.href, { headers, cache: "no-store", credentials: "same-origin", redirect: "error" });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(`${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
    if (!fresh || busy(state.part)) return;
    state.mark = answer.headers.get("ETag") ?? fresh.dataset.live;
    const wasOpen = opened(state.part);
    const focused = document.activeElement?.id;
    const scrolled = [...state.part.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    state.part.replaceWith(fresh);
    state.part = fresh;
    const now = [...fresh.querySelectorAll("details")];
    if (now.length === wasOpen.length) now.forEach((each, place) => (each.open = wasOpen[place]));
    [...fresh.querySelectorAll(".scroll")].forEach((each, place) => {
      if (scrolled[place]) [each.scrollLeft, each.scrollTop] = scrolled[place];
    });
    ready(fresh);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  const poll = (state) => {
    let pause = POLL_MILLISECONDS;
    const look = async () => {
      if (!document.hidden) {
        try {
          await refresh(state);
          pause = POLL_MILLISECONDS;
        } catch {
          pause = Math.min(2 * pause, LONGEST_MILLISECONDS);
        }
      }
      setTimeout(look, pause);
    };
    setTimeout(look, pause);
  };

  // A submission that is under way tells of itself by events; its end brings the report.
  const follow = (state, address) => {
    const events = new EventSource(address);
    const moved = (event) => {
      const told = JSON.parse(event.data);
      const bar = state.part.querySelector("progress");
      const says = state.part.querySelector("[data-says]");
      if (bar && told.progress?.total) {
        bar.max = told.progress.total;
        bar.value = told.progress.done;
      }
      if (!says) return;
      if (told.progress) says.textContent = `${told.progress.phase.replaceAll("_", " ")}: ${told.progress.done} of ${told.progress.total}.`;
      else if (told.position) says.textContent = `Number ${told.position} of those that wait.`;
    };
    events.addEventListener("status", moved);
    events.addEventListener("progress", moved);
    events.addEventListener("done", () => {
      events.close();
      refresh(state).catch(() => location.reload());
    });
  };

  ready(document);
  open();
  const part = document.getElementById("live");
  if (part?.dataset.events) follow({ part, mark: "" }, part.dataset.events);
  else if (part?.dataset.live) poll({ part, mark: part.dataset.live });
})();
