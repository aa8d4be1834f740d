from evenscore.cli.app import run_program
from recipes.rsr_like.command import APP

if __name__ == "__main__":
    run_program(APP, "python -m recipes.rsr_like")
