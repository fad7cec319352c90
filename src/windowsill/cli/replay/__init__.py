"""`windowsill replay`: recorded sessions, turn by turn, as an agent would have sent them."""
