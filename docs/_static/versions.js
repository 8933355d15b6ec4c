// A switch between the versions of the site, if it is published with others (docs/publish.py).
window.addEventListener("DOMContentLoaded", async () => {
  const home = new URL(`../${document.documentElement.dataset.content_root}`, location.href);
  const here = new URL(document.documentElement.dataset.content_root, location.href);
  const answer = await fetch(new URL("versions.json", home)).catch(() => null);
  if (!answer || !answer.ok) return;
  const versions = await answer.json();
  const select = document.createElement("select");
  select.className = "versions";
  select.setAttribute("aria-label", "Version");
  for (const version of versions) {
    select.add(new Option(version, version, false, here.pathname === `${home.pathname}${version}/`));
  }
  select.addEventListener("change", () => location.assign(new URL(`${select.value}/`, home)));
  document.querySelector(".sidebar-brand")?.after(select);
});
