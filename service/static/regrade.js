// Reloads a regrade's page when more of it has been tried or decided, unless somebody has begun to choose.
"use strict";
const watched = document.getElementById("progress");

async function look() {
  const answer = await fetch(watched.dataset.watch, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const { progress, decision } = await answer.json();
  const ended = progress.total - progress.waiting - progress.queued - progress.running;
  document.getElementById("bar").value = ended;
  const seen = ended + progress.applied + progress.dropped + progress.rolled_back;
  const decided = "deciding" in watched.dataset && decision.ended;
  const choosing = document.querySelector("input[type=checkbox]:checked, details[open]");
  if ((seen !== Number(watched.dataset.seen) || decided) && !choosing) location.reload();
}

setInterval(() => look().catch(() => {}), 3000);
