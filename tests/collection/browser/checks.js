// What a machine can see of whether everybody can use a page; each function gives a list of what is wrong.
(() => {
  const visible = (element) => element.checkVisibility() && getComputedStyle(element).visibility !== "hidden";
  const where = (element) => `${element.tagName.toLowerCase()}#${element.id}.${element.className?.baseVal ?? element.className}`;

  function nameOf(element) {
    const label = element.getAttribute("aria-label");
    const by = element.getAttribute("aria-labelledby");
    if (label) return label;
    if (by) return by.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
    if (element.labels?.length) return [...element.labels].map((one) => one.textContent).join(" ");
    return ["BUTTON", "A", "SUMMARY"].includes(element.tagName) ? element.textContent : "";
  }

  function color(text) {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  }
  function behind(element) {
    for (let at = element; at; at = at.parentElement) {
      const found = color(getComputedStyle(at).backgroundColor);
      if (found.a === 1) return found;
    }
    return color(getComputedStyle(document.body).backgroundColor);
  }
  function luminance({ r, g, b }) {
    const linear = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  }
  function contrast(one, other) {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  }

  function names() {
    const all = [...document.querySelectorAll("input, select, textarea, button, a[href], summary")].filter(visible);
    return all.filter((element) => !nameOf(element)?.trim()).map((element) => `no name: ${where(element)}`);
  }
  function groups() {
    const wrong = [...document.querySelectorAll("fieldset")].filter((set) => !set.querySelector(":scope > legend")?.textContent.trim());
    const loose = [...document.querySelectorAll("input[type=radio]")].filter((radio) => !radio.closest("fieldset, [role=radiogroup]"));
    return [...wrong, ...loose].map((element) => `not in a named group: ${where(element)}`);
  }
  function ids() {
    const seen = new Map();
    for (const { id } of document.querySelectorAll("[id]")) seen.set(id, (seen.get(id) ?? 0) + 1);
    const twice = [...seen].filter(([, count]) => count > 1).map(([id]) => `id twice: ${id}`);
    const missing = [...document.querySelectorAll("[aria-describedby], [aria-labelledby], label[for]")].flatMap((element) =>
      ["aria-describedby", "aria-labelledby", "for"]
        .flatMap((name) => (element.getAttribute(name) ?? "").split(" ").filter(Boolean))
        .filter((id) => !document.getElementById(id))
        .map((id) => `${where(element)} names ${id}, which is not there`),
    );
    return [...twice, ...missing];
  }
  function structure() {
    const wrong = [];
    const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter(visible).map(({ tagName }) => Number(tagName[1]));
    if (headings.filter((level) => level === 1).length !== 1) wrong.push(`headings: ${headings}`);
    headings.forEach((level, at) => at && level > headings[at - 1] + 2 && wrong.push(`headings jump: ${headings}`));
    if (!document.documentElement.lang) wrong.push("no language");
    if (document.querySelectorAll("main").length !== 1) wrong.push("no main part");
    if (!document.querySelector("[aria-live]")) wrong.push("nothing is announced");
    if (!document.title.trim()) wrong.push("no title");
    return wrong;
  }
  function contrasts() {
    const wrong = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || !visible(element) || element.closest(".unseen, .skip, noscript, option")) continue;
      const style = getComputedStyle(element);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const text = color(element instanceof SVGElement ? style.fill : style.color);
      const found = contrast(text, behind(element));
      if (found < (large ? 3 : 4.5)) wrong.push(`contrast ${found.toFixed(2)}: ${where(element)}`);
    }
    return wrong;
  }
  function width() {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth > clientWidth ? [`${scrollWidth} of ${clientWidth} pixels wide`] : [];
  }
  function targets() {
    const all = [...document.querySelectorAll("button, select, input:not([type=radio], [type=checkbox]), .option")].filter(visible);
    return all
      .filter((element) => element.getBoundingClientRect().height < 40)
      .map((element) => `too small to touch: ${where(element)}`);
  }
  window.pageChecks = () => [names, groups, ids, structure, contrasts, width, targets].flatMap((check) => check());
})();
