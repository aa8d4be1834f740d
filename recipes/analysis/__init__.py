"""Looking inside the score model: what cohorts, blocks of scores, phrases and hidden variables do on real scores."""
