() => {
  const parsed = (words) => {
    const numbers = words.match(/[\d.e-]+/g).map(Number);
    const scale = words.startsWith("color(") ? 255 : 1;
    return [...numbers.slice(0, 3).map((one) => one * scale), numbers.length > 3 ? numbers[3] : 1];
  };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  const behind = (one) => {
    if (!one) return [255, 255, 255, 1];
    const own = parsed(getComputedStyle(one).backgroundColor.replace("color(srgb ", "color("));
    return own[3] === 1 ? own : over(own, behind(one.parentElement));
  };
  const light = (colour) =>
    colour
      .slice(0, 3)
      .map((one) => one / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
      .reduce((sum, one, k) => sum + one * [0.2126, 0.7152, 0.0722][k], 0);
  const faults = [];
  let looked = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const one = walk.currentNode.parentElement;
    if (
      !walk.currentNode.textContent.trim() ||
      !one.checkVisibility() ||
      one.closest(".unseen, .skip, [disabled], title, desc, option")
    )
      continue;
    const style = getComputedStyle(one);
    const below = behind(one);
    const ink = parsed(
      (one.namespaceURI.endsWith("svg") ? style.fill : style.color).replace("color(srgb ", "color("),
    );
    const [a, b] = [light(over(ink, below)), light(below)].sort((x, y) => y - x);
    looked += 1;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5)
      faults.push(
        `${ratio.toFixed(2)} ${one.tagName}.${one.className.baseVal ?? one.className}: ${walk.currentNode.textContent.slice(0, 30)}`,
      );
  }
  return [looked, faults];
};
