// Numbers in words that are as exact as they need to be.

const MINUS = "\u2212";
const THIN = "\u202f";

export const whole = (number) => number.toLocaleString("en");

export function plain(number, digits = 4) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : `${MINUS}∞`;
  const size = Math.abs(number);
  const told =
    size !== 0 && (size < 1e-4 || size >= 1e7)
      ? number.toExponential(digits - 2)
      : number.toLocaleString("en", { maximumSignificantDigits: digits });
  return told.replace("-", MINUS);
}

export function signed(number, decimals = 2) {
  if (number === null || number === undefined || !Number.isFinite(number)) return plain(number);
  const told = Math.abs(number).toFixed(decimals);
  if (Number(told) === 0) return told;
  return (number > 0 ? "+" : MINUS) + told;
}

/** Never 0 % or 100 % of what is only nearly so. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  const per = 100 * share;
  if (share > 0 && per < 0.05) return `<${THIN}0.1${THIN}%`;
  if (share < 1 && per > 99.95) return `>${THIN}99.9${THIN}%`;
  return `${per.toFixed(1)}${THIN}%`;
}

/** Log-odds as a bet: "12 to 1". */
export function bet(logOdds) {
  const size = Math.abs(logOdds);
  if (size < 0.005) return "even";
  if (size > Math.log(1e6)) return "more than a million to 1";
  const odds = Math.exp(size);
  return `${odds < 10 ? odds.toFixed(1) : whole(Number(odds.toPrecision(2)))} to 1`;
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 1e6) return `${plain(bytes / 1e3, 3)} kB`;
  return `${plain(bytes / 1e6, 3)} MB`;
}

export const counted = (number, thing, things = `${thing}s`) =>
  `${whole(number)} ${number === 1 ? thing : things}`;
