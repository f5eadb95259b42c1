// Reports on standard input, an array; what mutation-testing-metrics makes of them on standard output: the score in
// percent (null without mutants), and of each mutant with a replacement the lines as they are and as it makes them.
// The argument is the folder of installed packages.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const entry = join(resolve(process.argv[2]), 'mutation-testing-metrics/dist/src/index.js');
const { calculateMutationTestMetrics } = await import(pathToFileURL(entry));

const mutantsOf = (metrics) => [...(metrics.file?.mutants ?? []), ...metrics.childResults.flatMap(mutantsOf)];

const seen = JSON.parse(readFileSync(0, 'utf-8')).map((report) => {
  const { systemUnderTestMetrics: system, testMetrics: tests } = calculateMutationTestMetrics(report);
  const { mutationScore, totalDetected, totalValid } = system.metrics;
  return {
    score: mutationScore,
    detected: totalDetected,
    valid: totalValid,
    killing: tests?.metrics.killing ?? 0,
    mutants: mutantsOf(system)
      .filter((mutant) => mutant.replacement !== undefined)
      .map((mutant) => ({ id: mutant.id, before: mutant.getOriginalLines(), after: mutant.getMutatedLines() })),
  };
});
process.stdout.write(JSON.stringify(seen));
