"""Generated blocks of pages: the campaigns and the mutants, and where they run. Pure functions of the cases."""

from collections import Counter
from collections.abc import Iterable

from faults.campaigns.mutants import mutants
from faults.cases import CAMPAIGNS, all_cases
from pages.blocks import table
from simulation.campaigns import CASES as SIMULATED
from simulation.campaigns import MUTANTS as SIMULATED_MUTANTS


def blocks() -> dict[str, str]:
    """The blocks of docs/reliability.md that follow from the cases."""
    return {"campaigns": f"{campaigns()}\n\n{summary()}", "mutants": mutant_table()}


def summary() -> str:
    """The numbers of cases and mutants that every change must pass, and of all."""
    cases, found = all_cases(), mutants()
    real = sum(case.gate for case in cases.values())
    gate_mutants = len(SIMULATED_MUTANTS) + sum(mutant.gate for mutant in found.values())
    return (
        f"Every change must pass {len(SIMULATED):,} cases in the simulation and {real} on a real control plane, and "
        f"{gate_mutants} of {len(found)} mutants must be detected. Every night, all {len(cases):,} cases and all "
        "mutants run."
    )


def campaigns() -> str:
    """The table of all campaigns."""
    cases = all_cases()
    total, simulated = _numbers(cases), _numbers(SIMULATED)
    real = _numbers(name for name, case in cases.items() if case.gate)
    rows = [["Campaign", "Content", "Cases", "Every change: simulation", "Every change: real control plane"]]
    rows += [[name, about, *_cells(total[name], simulated[name], real[name])] for name, about in CAMPAIGNS.items()]
    return table([*rows, ["", "all", *_cells(total.total(), simulated.total(), real.total())]])


def mutant_table() -> str:
    """The defect of each mutant, and the case that detects it."""
    rows = [[name, mutant.about, f"`{mutant.case}`"] for name, mutant in mutants().items()]
    return table([["Mutant", "Defect", "Detected by"], *rows])


def _numbers(names: Iterable[str]) -> Counter[str]:
    """The number of cases of each campaign."""
    return Counter(name.partition("/")[0] for name in names)


def _cells(*numbers: int) -> list[str]:
    return [str(number) if number else "–" for number in numbers]
