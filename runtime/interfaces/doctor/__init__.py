"""The examination behind `fairlead doctor`: the machine, the programs, the data folder."""
