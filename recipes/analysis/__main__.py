from evenscore.cli.app import run_program
from recipes.analysis.command import APP

if __name__ == "__main__":
    run_program(APP, "python -m recipes.analysis")
