"""How far the replay of a record agrees with what the live engine did, as the record shows it."""
