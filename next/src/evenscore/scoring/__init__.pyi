from .bilinear import BilinearScores as BilinearScores
