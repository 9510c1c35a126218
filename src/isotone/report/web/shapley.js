"use strict";
/* Shapley values of the columns, against one row or several, as isotone.explanation.explain has them:
   the mean over the rows b that are compared with of
   sum over sets S of |S|! (m - |S| - 1)! / m! (f(b with S and it from the row) - f(b with S from the row)). */
isotone.shapley = function* shapley(app, row, others) {
  const { network, view, data } = app;
  const MOST = 12; // columns whose sets are enumerated
  const WORK = 4e8; // multiplications, about a second
  const { controls } = data;
  const differing = others.map((other) => controls.map((_, k) => k).filter((k) => differs(controls[k], other)));
  const sets = differing.reduce((sum, { length: m }) => sum + 2 ** m, 0);
  const isExact = Math.max(...differing.map(({ length: m }) => m)) <= MOST && sets * network.size <= WORK;
  const draws = [];
  if (isExact) yield* enumerate();
  else yield* follow();
  return summary();

  function featuresOf({ feature, features, indicator }) {
    return [...(features || [feature]), ...(indicator === undefined ? [] : [indicator])];
  }

  function differs(control, other) {
    return featuresOf(control).some((i) => row[i] !== other[i]);
  }

  /* The score; of several classes the probability, whose directions are promised. */
  function value(made) {
    const scores = network.score(made);
    if (view.points) return app.show(scores);
    return data.outcomes.kind === "classes" ? network.probability(scores)[view.output] : scores[view.output];
  }

  /* Columns of a set, numbered by bits, from the row. */
  function mixed(other, moved, set) {
    const made = [...other];
    moved.forEach((k, bit) => {
      if (set & (1 << bit)) featuresOf(controls[k]).forEach((i) => { made[i] = row[i]; });
    });
    return made;
  }

  /* All sets, for one row after the other. */
  function* enumerate() {
    for (let b = 0; b < others.length; b += 1) {
      const moved = differing[b];
      const m = moved.length;
      const values = new Float64Array(2 ** m);
      for (let set = 0; set < values.length; set += 1) {
        values[set] = value(mixed(others[b], moved, set));
        if (set % 8 === 7) yield;
      }
      const weights = Array.from({ length: m }, (_, n) => (factorial(n) * factorial(m - n - 1)) / factorial(m));
      const shares = new Float64Array(controls.length);
      moved.forEach((k, bit) => {
        for (let set = 0; set < values.length; set += 1) {
          if (!(set & (1 << bit))) shares[k] += weights[bits(set)] * (values[set | (1 << bit)] - values[set]);
        }
      });
      draws.push({ from: values[0], shares });
    }
  }

  /* Drawn orders of the columns, each followed there and back; the sum is right for any number of them. */
  function* follow() {
    const random = isotone.random(1);
    const each = Math.max(Math.ceil(32 / others.length), 2);
    for (let n = 0; n < each * others.length; n += 1) {
      const b = n % others.length;
      const order = shuffled(differing[b], random);
      const shares = new Float64Array(controls.length);
      yield* walk(others[b], order, shares);
      yield* walk(others[b], order.reverse(), shares);
      draws.push({ b, from: value(others[b]), shares: shares.map((share) => share / 2) });
    }
  }

  function* walk(other, order, shares) {
    const made = [...other];
    let before = value(made);
    for (const k of order) {
      featuresOf(controls[k]).forEach((i) => { made[i] = row[i]; });
      const after = value(made);
      shares[k] += after - before;
      before = after;
      yield;
    }
  }

  function shuffled(moved, random) {
    const order = [...moved];
    for (let k = order.length - 1; k > 0; k -= 1) {
      const other = Math.floor(random() * (k + 1));
      [order[k], order[other]] = [order[other], order[k]];
    }
    return order;
  }

  function summary() {
    const some = controls.map((_, k) => k).filter((k) => differing.some((moved) => moved.includes(k)));
    const parts = some.map((k) => ({ control: controls[k], ...mean(draws.map(({ shares }) => shares[k])) }));
    return { total: value(row), from: mean(draws.map(({ from }) => from)).share, parts, isExact, n: draws.length };
  }

  /* The mean, and its standard error if orders were drawn: from the spread among the orders of every row. */
  function mean(values) {
    const average = (some) => some.reduce((sum, x) => sum + x, 0) / some.length;
    const share = average(values);
    if (isExact) return { share, error: 0 };
    const variance = others.map((_, b) => {
      const own = values.filter((__, n) => draws[n].b === b);
      const middle = average(own);
      return own.reduce((sum, x) => sum + (x - middle) ** 2, 0) / (own.length - 1) / own.length;
    });
    return { share, error: Math.sqrt(variance.reduce((sum, v) => sum + v, 0)) / others.length };
  }

  function factorial(n) {
    return n < 2 ? 1 : n * factorial(n - 1);
  }

  function bits(set) {
    let n = 0;
    for (let rest = set; rest; rest &= rest - 1) n += 1;
    return n;
  }
};

/* Numbers from 0 to 1, the same ones for the same seed. */
isotone.random = (seed) => {
  let state = seed;
  return () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
};

/* What a generator returns, all of it at once. */
isotone.finish = (work) => {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
};
